package sqlreach_test

import (
	"context"
	"fmt"
	"net"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/flowhost/flowhost/internal/reach/sqlreach"
	"github.com/flowhost/flowhost/run/access"
)

// TestPoolsStay keeps a pool as long as nothing about the connection changes.
func TestPoolsStay(t *testing.T) {
	t.Parallel()
	r := sqliteRig(t)
	for range 3 {
		a := r.attempt() // each with a copy of the connection, as after a reload
		a.want("[[1]]", "SELECT 1")
		a.Close()
	}
	if n := r.pools.Count(); n != 1 {
		t.Errorf("%d pools", n)
	}
	other := r.with(access.ReadWrite)
	other.conn.SQL.MaxOpen = 2
	a := other.attempt()
	a.want("[[1]]", "SELECT 1")
	if n := r.pools.Count(); n != 1 {
		t.Errorf("%d pools after a change", n)
	}
}

// TestUnusedPools closes a pool to which nobody comes back.
func TestUnusedPools(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 23, 0, 0, 0, 0, time.UTC)
	pools := sqlreach.New(sqlreach.Config{Secrets: &secrets{}, Now: func() time.Time { return now }})
	t.Cleanup(pools.Close)
	one, two := sqliteRig(t), sqliteRig(t)
	one.pools, two.pools = pools, pools
	a := one.attempt()
	a.want("[[1]]", "SELECT 1")
	a.Close()
	now = now.Add(time.Hour)
	b := two.attempt()
	b.want("[[1]]", "SELECT 1")
	if n := pools.Count(); n != 1 {
		t.Errorf("%d pools", n)
	}
	pools.Close()
	b.Close()
	two.attempt().fails(access.CodeCanceled, access.KindSQLQuery, object{"sql": "SELECT 1"})
}

// TestNarrowed takes the right to write away while a transaction is open.
func TestNarrowed(t *testing.T) {
	t.Parallel()
	r := sqliteRig(t)
	declared := r.conn
	var denial *access.Fault
	s := r.pools.Session(access.Caller{Flow: "flow"}, func(string) (*access.Connection, *access.Fault) {
		c := declared
		return &c, denial
	})
	t.Cleanup(s.Close)
	a := &attempt{s, t}
	table(a)
	a.must(access.KindSQLBegin, nil)
	a.exec("INSERT INTO things VALUES (1, 'one')")
	declared = r.with(access.ReadOnly).conn
	a.fails(access.CodeConflict, access.KindSQLCommit, nil)
	a.want("[]", "SELECT * FROM things")
	a.fails(access.CodeDenied, access.KindSQLExec, object{"sql": "INSERT INTO things VALUES (1, 'one')"})
	declared = r.conn
	a.exec("INSERT INTO things VALUES (1, 'one')")
	denial = &access.Fault{Code: access.CodeDenied, Message: "not granted"}
	a.fails(access.CodeDenied, access.KindSQLQuery, object{"sql": "SELECT 1"})
}

func TestRate(t *testing.T) {
	t.Parallel()
	r := sqliteRig(t)
	r.conn.Limit = access.Limit{Rate: 0.001, Burst: 2}
	a, b := r.attempt(), r.attempt()
	a.want("[[1]]", "SELECT 1")
	b.want("[[1]]", "SELECT 1")
	answer := a.do(soon(t), access.KindSQLQuery, object{"sql": "SELECT 1"})
	if answer.Fault == nil || answer.Fault.Code != access.CodeTimeout || !strings.Contains(answer.Fault.Message, "rate") {
		t.Errorf("%+v", answer.Fault)
	}
}

func TestNoDatabase(t *testing.T) {
	t.Parallel()
	pools := newPools(t, nil)
	for name, c := range map[string]access.Connection{
		"http":   {Type: access.TypeHTTP, HTTP: &access.HTTPConnection{}},
		"proxy":  {Type: access.TypePostgres, Proxy: &access.Value{Text: "http://x"}, SQL: &access.SQLConnection{DSN: access.Value{Text: "postgres://u@h/d"}}},
		"TLS":    {Type: access.TypePostgres, TLS: &access.TLS{Mode: "prefer"}, SQL: &access.SQLConnection{DSN: access.Value{Text: "postgres://u@h/d"}}},
		"no DSN": {Type: access.TypeMySQL, SQL: &access.SQLConnection{}},
	} {
		c.Name = "db"
		if err := pools.Test(t.Context(), "flow", &c); err == nil || faultOf(t, err).Code != access.CodeInvalid {
			t.Errorf("%s: %v", name, err)
		}
	}
	err := pools.Test(t.Context(), "flow", &access.Connection{Name: "db", Type: access.TypePostgres, SQL: &access.SQLConnection{DSN: access.Value{Secret: "dsn"}}})
	if err == nil || faultOf(t, err).Message != "no such secret" {
		t.Error(err)
	}
}

// TestDial checks what the guarded dialer gets, and what becomes of its denial.
func TestDial(t *testing.T) {
	t.Parallel()
	for kind, dsn := range map[string]string{access.TypePostgres: "postgres://bob:pw@db.test/x", access.TypeMySQL: "bob:pw@tcp(db.test:5432)/x"} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			var dialed []string
			pools := sqlreach.New(sqlreach.Config{Secrets: &secrets{}, Dial: func(_ context.Context, c *access.Connection, network, address string) (net.Conn, error) {
				dialed = append(dialed, c.Name+" "+network+" "+address)
				return nil, &access.Fault{Code: access.CodeDenied, Rule: "private address", Message: "db.test leads to 10.0.0.5", Target: "db.test:5432", Add: `private = ["10.0.0.5:5432"]`}
			}})
			t.Cleanup(pools.Close)
			err := pools.Test(t.Context(), "flow", &access.Connection{Name: "db", Type: kind, Folder: t.TempDir(), SQL: &access.SQLConnection{DSN: access.Value{Text: dsn}}})
			if err == nil {
				t.Fatal("no error")
			}
			got := faultOf(t, err)
			if got.Code != access.CodeDenied || got.Rule != "private address" || got.Target != "db" || got.Full().Add != `private = ["10.0.0.5:5432"]` {
				t.Errorf("%+v", got)
			}
			hidden(t, fmt.Sprintf("%+v", withoutInside(got)), "10.0.0.5", "db.test", "5432")
			if len(dialed) != 1 || dialed[0] != "db tcp db.test:5432" {
				t.Errorf("dialed %q", dialed)
			}
		})
	}
}

// TestFaultsHideTheAddress has connections fail in each way: the guest sees neither host, port,
// user nor database, and the operator sees the reason.
func TestFaultsHideTheAddress(t *testing.T) {
	t.Parallel()
	const host, port, user, password, database = "db.hidden.test", "5439", "flowuser_q", "s3cret_q", "flowdata_q"
	refused := &net.OpError{Op: "dial", Net: "tcp", Addr: &net.TCPAddr{IP: net.IPv4(192, 0, 2, 7), Port: 5439}, Err: syscall.ECONNREFUSED}
	for name, tt := range map[string]struct {
		dial func(ctx context.Context) (net.Conn, error)
		code string
		full string // what the operator sees
	}{
		"connection refused": {func(context.Context) (net.Conn, error) { return nil, refused }, access.CodeUnreachable, "192.0.2.7:5439"},
		"no such name": {func(context.Context) (net.Conn, error) {
			return nil, &net.DNSError{Err: "no such host", Name: host, IsNotFound: true}
		}, access.CodeUnreachable, host},
		"private": {func(context.Context) (net.Conn, error) {
			return nil, &access.Fault{Code: access.CodeDenied, Rule: "private address", Target: host + ":" + port, Message: host + " leads to 192.0.2.7", Add: `private = ["192.0.2.7:5439"]`}
		}, access.CodeDenied, "192.0.2.7"},
		"time is over": {func(ctx context.Context) (net.Conn, error) { <-ctx.Done(); return nil, ctx.Err() }, access.CodeTimeout, "deadline"},
		"not a server": {func(context.Context) (net.Conn, error) {
			here, there := net.Pipe()
			go func() { // ends with the pipe, which the driver closes
				_, _ = there.Write([]byte("HTTP/1.1 400 Bad Request\r\nServer: " + host + "\r\n\r\n"))
				_ = there.Close()
			}()
			return here, nil
		}, access.CodeUnreachable, ""},
	} {
		for kind, dsn := range map[string]string{
			access.TypePostgres: "postgres://" + user + ":" + password + "@" + host + ":" + port + "/" + database,
			access.TypeMySQL:    user + ":" + password + "@tcp(" + host + ":" + port + ")/" + database,
		} {
			t.Run(name+", "+kind, func(t *testing.T) {
				t.Parallel()
				r := &rig{t: t, conn: access.Connection{Name: "db", Type: kind, Folder: t.TempDir(), SQL: &access.SQLConnection{DSN: access.Value{Text: dsn}}}}
				r.pools = sqlreach.New(sqlreach.Config{Secrets: &secrets{}, Dial: func(ctx context.Context, _ *access.Connection, _, _ string) (net.Conn, error) { return tt.dial(ctx) }})
				t.Cleanup(r.pools.Close)
				ctx := t.Context()
				if tt.code == access.CodeTimeout {
					ctx = soon(t)
				}
				answer := r.attempt().do(ctx, access.KindSQLQuery, object{"sql": "SELECT 1"})
				f := answer.Fault
				if f == nil || f.Code != tt.code || !strings.Contains(f.Full().Message, tt.full) {
					t.Fatalf("%+v, of which the operator sees %+v", f, f.Full())
				}
				hidden(t, string(answer.Head)+fmt.Sprintf("%+v", withoutInside(f)), host, port, user, password, database, "192.0.2.7")
				hidden(t, f.Full().Message, password)
			})
		}
	}
}

// TestEnvironment checks that nothing of the host's environment reaches a connection.
func TestEnvironment(t *testing.T) {
	for name, value := range map[string]string{
		"PGHOST": "evil.test", "PGPORT": "1", "PGUSER": "evil", "PGPASSWORD": "evil", "PGDATABASE": "evil", "PGSSLMODE": "nonsense", "PGTARGETSESSIONATTRS": "nonsense",
		"PGSSLROOTCERT": "/nonexistent", "PGMINPROTOCOLVERSION": "9", "PGMAXPROTOCOLVERSION": "9", "PGCONNECT_TIMEOUT": "x", "PGOPTIONS": "-c x=y", "PGHOSTADDR": "evil.test",
	} {
		t.Setenv(name, value)
	}
	address := ""
	pools := sqlreach.New(sqlreach.Config{Secrets: &secrets{}, Dial: func(_ context.Context, _ *access.Connection, _, to string) (net.Conn, error) {
		address = to
		return nil, net.ErrClosed
	}})
	t.Cleanup(pools.Close)
	err := pools.Test(t.Context(), "flow", &access.Connection{Name: "db", Type: access.TypePostgres, SQL: &access.SQLConnection{DSN: access.Value{Text: "postgres://bob@db.test/x"}}})
	if err == nil || faultOf(t, err).Code != access.CodeUnreachable || address != "db.test:5432" {
		t.Errorf("%v, dialed %q", err, address)
	}
}
