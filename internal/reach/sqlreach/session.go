package sqlreach

import (
	"context"
	"encoding/json"
	"reflect"
	"slices"
	"sync"

	"github.com/flowhost/flowhost/internal/jsonscan"
	"github.com/flowhost/flowhost/run/access"
)

// Session is the use of databases by one attempt.
type Session struct {
	pools   *Pools
	caller  access.Caller
	resolve func(name string) (*access.Connection, *access.Fault)

	mu      sync.Mutex
	closed  bool
	holds   map[string]*hold // by name of the connection
	cursors int              // open
	last    int              // number of a cursor
}

// hold is what a session has of one connection. The lock is a channel, so that waiting for
// it ends with a context.
type hold struct {
	lock chan struct{}

	declared *access.Connection // for which the lease was taken
	lease    *lease             // nil: none
	parked   bool               // others may take the lease
	tx       bool               // a transaction of the guest is open
	readOnly bool               // of the transaction
	failed   bool               // the transaction can only be rolled back
	wrapped  bool               // a transaction of the host is open, around a result
	cursors  map[int]*cursor
}

// request is the head of every operation; each kind uses some of its members.
type request struct {
	Connection string
	SQL        string
	Args       []json.RawMessage
	PageRows   int
	MaxRows    int
	Cursor     int
	Isolation  string
	ReadOnly   bool
}

// member is where a member of the head goes, nil for one that no kind has.
func (r *request) member(name string) any {
	switch name {
	case "connection":
		return &r.Connection
	case "sql":
		return &r.SQL
	case "args":
		return &r.Args
	case "page_rows":
		return &r.PageRows
	case "max_rows":
		return &r.MaxRows
	case "cursor":
		return &r.Cursor
	case "isolation":
		return &r.Isolation
	case "read_only":
		return &r.ReadOnly
	}
	return nil
}

// operation performs a kind. The hold is locked and has a lease where needs says so.
type operation struct {
	members []string
	needs   bool // a lease
	run     func(*Session, context.Context, *hold, *request) access.Answer
}

var operations = map[string]operation{
	access.KindSQLQuery:    {[]string{"sql", "args", "page_rows", "max_rows"}, true, (*Session).query},
	access.KindSQLExec:     {[]string{"sql", "args"}, true, (*Session).exec},
	access.KindSQLBegin:    {[]string{"isolation", "read_only"}, true, (*Session).begin},
	access.KindSQLNext:     {[]string{"cursor"}, false, (*Session).next},
	access.KindSQLClose:    {[]string{"cursor"}, false, (*Session).closeCursor},
	access.KindSQLCommit:   {nil, false, (*Session).commit},
	access.KindSQLRollback: {nil, false, (*Session).rollback},
}

// Do performs an operation.
func (s *Session) Do(ctx context.Context, op *access.Operation) access.Answer {
	o, ok := operations[op.Kind]
	if !ok {
		return failed(invalid("%q is no operation on a database", op.Kind))
	}
	r, f := decodeRequest(op, o.members)
	if f == nil {
		f = ended(ctx)
	}
	if f != nil {
		return failed(f)
	}
	c, f := s.resolve(r.Connection)
	if f != nil {
		return failed(f)
	}
	h, f := s.hold(ctx, r.Connection)
	if f != nil {
		return failed(f)
	}
	defer s.unlock(h)
	if f = s.leaseFor(ctx, h, c, o.needs); f != nil {
		f.Target = r.Connection
		return failed(f)
	}
	a := o.run(s, ctx, h, r)
	if a.Fault != nil && a.Fault.Target == "" {
		a.Fault.Target = r.Connection
		a = failed(a.Fault)
	}
	return a
}

// Close rolls back what is open and gives all connections back. It waits for operations
// that are under way: end their contexts before.
func (s *Session) Close() {
	s.mu.Lock()
	s.closed = true
	all := s.holds
	s.mu.Unlock()
	for _, h := range all {
		h.lock <- struct{}{}
		s.release(h)
		<-h.lock
	}
}

// maxStatement bounds the text of a statement.
const maxStatement = 1 << 20

// decodeRequest reads a head. Members of other kinds are refused.
func decodeRequest(op *access.Operation, members []string) (*request, *access.Fault) {
	var r request
	var fault *access.Fault
	err := jsonscan.Members(op.Head, func(name string, value []byte) error {
		to := r.member(name)
		if to == nil || name != "connection" && !slices.Contains(members, name) {
			fault = invalid("the head of %s has an unknown member %q: it takes connection and %q", op.Kind, shortWord(name), members)
			return fault
		}
		if err := jsonscan.Decode(value, to); err != nil {
			fault = invalid("member %s of the head of %s has the wrong type: %v", name, op.Kind, err)
			return fault
		}
		return nil
	})
	switch {
	case fault != nil:
		return nil, fault
	case err != nil:
		return nil, invalid("the head of %s is no JSON object", op.Kind)
	}
	switch {
	case r.Connection == "":
		return nil, invalid("the head of %s names no connection", op.Kind)
	case len(r.SQL) > maxStatement:
		return nil, &access.Fault{Code: access.CodeTooLarge, Message: "the statement is longer than 1 MiB: pass values as arguments"}
	case r.PageRows < 0 || r.MaxRows < 0:
		return nil, invalid("page_rows and max_rows of %s are not negative", op.Kind)
	}
	return &r, checkIsolation(r.Isolation)
}

// hold finds what the session has of a connection, and locks it.
func (s *Session) hold(ctx context.Context, name string) (*hold, *access.Fault) {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return nil, &access.Fault{Code: access.CodeCanceled, Message: "the attempt is over"}
	}
	h := s.holds[name]
	if h == nil {
		h = &hold{lock: make(chan struct{}, 1), cursors: map[int]*cursor{}}
		s.holds[name] = h
	}
	s.mu.Unlock()
	select {
	case h.lock <- struct{}{}:
	case <-ctx.Done():
		return nil, ended(ctx)
	}
	s.mu.Lock()
	closed := s.closed
	s.mu.Unlock()
	if closed {
		<-h.lock
		return nil, &access.Fault{Code: access.CodeCanceled, Message: "the attempt is over"}
	}
	return h, nil
}

// unlock parks the connection or gives it back, and lets the next operation in.
func (s *Session) unlock(h *hold) {
	switch {
	case h.lease == nil || h.busy() && !h.lease.broken:
	case h.lease.broken:
		s.release(h)
	default:
		if h.parked = h.lease.park(); !h.parked {
			s.forget(h)
		}
	}
	<-h.lock
}

// busy reports whether the session cannot do without its connection.
func (h *hold) busy() bool { return h.tx || h.wrapped || len(h.cursors) > 0 }

// leaseFor gets the hold its connection where the operation needs one. One that was
// declared otherwise is exchanged as soon as nothing is open on it, and one that may do
// less now at once, with what is open on it.
func (s *Session) leaseFor(ctx context.Context, h *hold, c *access.Connection, needs bool) *access.Fault {
	if h.parked {
		h.parked = false
		if !h.lease.unpark() {
			s.forget(h)
		}
	}
	if h.lease != nil && h.declared != c && !reflect.DeepEqual(h.declared, c) && (!h.busy() || narrows(h.declared, c)) {
		s.release(h)
	}
	if h.lease != nil {
		return nil
	}
	h.declared = c
	if !needs {
		return nil
	}
	p, f := s.pools.get(ctx, s.caller.Flow, c)
	if f != nil {
		return f
	}
	if h.lease, f = p.take(ctx, s.caller.Flow); f != nil {
		s.pools.put(p)
		h.lease = nil
	}
	return f
}

// narrows reports whether a declaration that has changed allows less than before.
func narrows(before, now *access.Connection) bool {
	return now.SQL == nil || before.SQL.Access == access.ReadWrite && now.SQL.Access != access.ReadWrite
}

// forget notes that the hold's connection is another's or closed.
func (s *Session) forget(h *hold) {
	s.pools.put(h.lease.pool)
	h.lease, h.parked = nil, false
	h.tx, h.readOnly, h.failed, h.wrapped = false, false, false, false
}

// release rolls back what is open and gives the connection back.
func (s *Session) release(h *hold) {
	if h.lease == nil || h.parked && !h.lease.unpark() {
		if h.lease != nil {
			s.forget(h)
		}
		return
	}
	for _, c := range h.cursors {
		s.drop(h, c)
	}
	if (h.tx || h.wrapped) && !h.lease.broken {
		ctx, cancel := context.WithTimeout(h.lease.base, returnTime)
		if _, err := h.lease.conn.ExecContext(ctx, "ROLLBACK"); err != nil {
			h.lease.broken = true
		}
		cancel()
	}
	h.lease.giveBack()
	s.forget(h)
}
