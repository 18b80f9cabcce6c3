package sqlreach_test

import (
	"context"
	"encoding/json"
	"errors"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/flowhost/flowhost/internal/reach/sqlreach"
	"github.com/flowhost/flowhost/run/access"
)

// rig is pools and a connection that tests use.
type rig struct {
	t     testing.TB
	pools *sqlreach.Pools
	conn  access.Connection
}

// secrets are values by name.
type secrets struct {
	mu     sync.Mutex
	values map[string]string
}

func (s *secrets) Resolve(_ context.Context, _, name string) (string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	value, ok := s.values[name]
	if !ok {
		return "", &access.Fault{Code: access.CodeInternal, Message: "no such secret"}
	}
	return value, nil
}

func newPools(t testing.TB, s access.Secrets) *sqlreach.Pools {
	t.Helper()
	if s == nil {
		s = &secrets{}
	}
	pools := sqlreach.New(sqlreach.Config{Secrets: s, Dial: func(ctx context.Context, _ *access.Connection, network, address string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, network, address)
	}})
	t.Cleanup(pools.Close)
	return pools
}

// sqliteRig has an empty database with access "rw".
func sqliteRig(t testing.TB) *rig {
	t.Helper()
	return &rig{t: t, pools: newPools(t, nil), conn: access.Connection{
		Name: "db", Type: access.TypeSQLite, Folder: t.TempDir(),
		SQL: &access.SQLConnection{Path: "data.db", Access: access.ReadWrite},
	}}
}

// with is the rig with another access.
func (r *rig) with(mode access.Mode) *rig {
	other := *r
	sql := *r.conn.SQL
	sql.Access = mode
	other.conn.SQL = &sql
	return &other
}

// attempt is a session with helpers.
type attempt struct {
	*sqlreach.Session
	t testing.TB
}

func (r *rig) attempt() *attempt {
	r.t.Helper()
	return r.attemptOf("flow")
}

func (r *rig) attemptOf(flow string) *attempt {
	r.t.Helper()
	conn := r.conn
	s := r.pools.Session(access.Caller{Flow: flow}, func(name string) (*access.Connection, *access.Fault) {
		if name != conn.Name {
			return nil, &access.Fault{Code: access.CodeDenied, Message: "not granted"}
		}
		return &conn, nil
	})
	r.t.Cleanup(s.Close)
	return &attempt{s, r.t}
}

type object map[string]any

// do performs an operation on the connection "db".
func (a *attempt) do(ctx context.Context, kind string, head object) access.Answer {
	a.t.Helper()
	all := object{"connection": "db"}
	for k, v := range head {
		all[k] = v
	}
	text, err := json.Marshal(all)
	if err != nil {
		a.t.Fatal(err)
	}
	return a.Do(ctx, &access.Operation{Kind: kind, Head: text})
}

// must performs an operation that succeeds.
func (a *attempt) must(kind string, head object) access.Answer {
	a.t.Helper()
	answer := a.do(a.t.Context(), kind, head)
	if answer.Fault != nil {
		a.t.Fatalf("%s %v: %+v", kind, head, answer.Fault)
	}
	return answer
}

// fails performs an operation that fails with a code.
func (a *attempt) fails(code, kind string, head object) *access.Fault {
	a.t.Helper()
	answer := a.do(a.t.Context(), kind, head)
	if answer.Fault == nil {
		a.t.Fatalf("%s %v: no fault but %s %s", kind, head, answer.Head, answer.Body)
	}
	if answer.Fault.Code != code {
		a.t.Fatalf("%s %v: %+v, want %s", kind, head, answer.Fault, code)
	}
	var encoded access.Fault
	if err := json.Unmarshal(answer.Head, &encoded); err != nil || encoded != withoutInside(answer.Fault) {
		a.t.Errorf("the head is %s, and the fault %+v", answer.Head, answer.Fault)
	}
	return answer.Fault
}

func (a *attempt) exec(text string, args ...any) access.Answer {
	a.t.Helper()
	return a.must(access.KindSQLExec, object{"sql": text, "args": args})
}

// rows is the body of a query.
func (a *attempt) rows(text string, args ...any) string {
	a.t.Helper()
	return string(a.must(access.KindSQLQuery, object{"sql": text, "args": args}).Body)
}

func (a *attempt) want(rows, text string, args ...any) {
	a.t.Helper()
	if got := a.rows(text, args...); got != rows {
		a.t.Errorf("%s:\n got %s\nwant %s", text, got, rows)
	}
}

// head is the head of an answer to sql.query and sql.next.
type head struct {
	Columns []struct {
		Name, Type string
		Nullable   *bool
	}
	Rows, Cursor int
	Truncated    bool
}

func headOf(t testing.TB, a access.Answer) head {
	t.Helper()
	var h head
	if err := json.Unmarshal(a.Head, &h); err != nil {
		t.Fatal(err)
	}
	return h
}

// returned checks that no session has a connection.
func (r *rig) returned() {
	r.t.Helper()
	if n := r.pools.Taken(); n != 0 {
		r.t.Errorf("%d connections are taken", n)
	}
	for name, s := range r.pools.Stats() {
		if s.InUse != 0 {
			r.t.Errorf("%s: %d connections are in use", name, s.InUse)
		}
	}
}

// soon is a context whose deadline is near.
func soon(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	t.Cleanup(cancel)
	return ctx
}

// hidden checks that a text has none of the parts.
func hidden(t testing.TB, text string, parts ...string) {
	t.Helper()
	for _, part := range parts {
		if strings.Contains(text, part) {
			t.Errorf("%q is in %s", part, text)
		}
	}
}

func faultOf(t testing.TB, err error) *access.Fault {
	t.Helper()
	var f *access.Fault
	if !errors.As(err, &f) {
		t.Fatalf("%v is no fault", err)
	}
	return f
}

// withoutInside is a fault as guests get it.
func withoutInside(f *access.Fault) access.Fault {
	guest := *f
	guest.Inside = nil
	return guest
}
