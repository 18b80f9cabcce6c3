package main

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/flowhost/flowhost/bus/kv"
	"github.com/flowhost/flowhost/bus/messages"
	"github.com/flowhost/flowhost/bus/natsd"
	"github.com/flowhost/flowhost/host"
	"github.com/flowhost/flowhost/host/door"
	"github.com/flowhost/flowhost/internal/reach"
	"github.com/flowhost/flowhost/internal/reach/httpreach"
	"github.com/flowhost/flowhost/internal/reach/sqlreach"
	"github.com/flowhost/flowhost/run"
	"github.com/flowhost/flowhost/run/access"
)

// What an operation of each kind costs: natively in Go; in a pristine call of a guest of
// some hundred bytes, and of a Go guest, with one operation each. What the calls cost
// without an operation is beside them ("nothing").
func BenchmarkOperations(b *testing.B) {
	w := newWorld(b)
	tiny, large := w.host(b, keptGuest(b, "wat/operations")), w.host(b, buildGuest(b, "flowhost", "./host/testdata/guests/outside"))
	for _, o := range w.operations(b) {
		b.Run(o.name, func(b *testing.B) {
			w.operation = o.operation
			ways := []*way{
				{name: "native", call: o.native},
				{name: "tiny", call: func() error { return tiny("once", "null") }},
				{name: "go", call: func() error { return large("fetch", `"/x"`) }},
				{name: "tiny-nothing", call: func() error { return tiny("nothing", "null") }},
				{name: "go-nothing", call: func() error { return large("flood", `{"N":0}`) }},
			}
			compare(b, ways)
			tabulate(b, ways, ways[0])
			least(b, ways)
		})
	}
}

// least prints the fastest call of each way: on a busy machine it says most.
func least(b *testing.B, ways []*way) {
	var text strings.Builder
	for _, w := range ways {
		fmt.Fprintf(&text, " %s %.1f µs", w.name, micros(slices.Min(w.took)))
	}
	b.Log("least:", text.String())
}

// Ten requests of 50 ms each, by goroutines of one call of a Go guest.
func BenchmarkOperationsAtOnce(b *testing.B) {
	w := newWorld(b)
	call := w.host(b, buildGuest(b, "flowhost", "./host/testdata/guests/outside"))
	w.operation = access.Operation{Kind: access.KindHTTP, Head: []byte(`{"connection":"api","url":"/slow"}`)}
	ten := &way{name: "ten", call: func() error { return call("several", "10") }}
	compareLong(b, []*way{ten})
	tabulate(b, []*way{ten}, ten)
	least(b, []*way{ten})
}

// world is what calls reach: an API, a database and a NATS server, in this process.
type world struct {
	*reach.Reach
	connections map[string]*access.Connection
	operation   access.Operation // that each operation of a guest is replaced by

	url, database string
	nc            *nats.Conn
	bucket        jetstream.KeyValue
}

func newWorld(b *testing.B) *world {
	dir := b.TempDir()
	w := &world{connections: map[string]*access.Connection{}, database: filepath.Join(dir, "rows.db")}
	api := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/slow" {
			time.Sleep(50 * time.Millisecond)
		}
		io.WriteString(rw, "{}")
	}))
	b.Cleanup(api.Close)
	w.url = api.URL
	w.connections["api"] = &access.Connection{Name: "api", Type: access.TypeHTTP, Operator: true, HTTP: &access.HTTPConnection{BaseURL: api.URL, Allow: []string{"GET /**"}}}
	w.connections["rows"] = &access.Connection{Name: "rows", Type: access.TypeSQLite, Folder: dir, SQL: &access.SQLConnection{Path: "rows.db", Access: access.ReadOnly}}
	db, err := sql.Open("sqlite", w.database)
	must(b, err)
	_, err = db.ExecContext(b.Context(), "CREATE TABLE rows (id INTEGER PRIMARY KEY, name TEXT); INSERT INTO rows VALUES (1, 'one')")
	must(b, errors.Join(err, db.Close()))

	server, err := natsd.Start(b.Context(), natsd.Config{Dir: filepath.Join(dir, "data"), NoListen: true, Sync: natsd.SyncMemory})
	must(b, err)
	b.Cleanup(func() { server.Shutdown(context.Background()) })
	w.nc, err = server.ConnectEngine()
	must(b, err)
	b.Cleanup(w.nc.Close)
	store, err := kv.New(kv.Config{Conn: w.nc, Replicas: 1})
	must(b, err)
	msgs, err := messages.New(messages.Config{Conn: w.nc})
	must(b, err)
	_, err = w.nc.Subscribe("bench.ask", func(m *nats.Msg) { _ = m.Respond([]byte("{}")) })
	must(b, err)

	client, err := httpreach.New(httpreach.Config{Secrets: w})
	must(b, err)
	b.Cleanup(client.Close)
	pools := sqlreach.New(sqlreach.Config{Secrets: w, Dial: func(context.Context, *access.Connection, string, string) (net.Conn, error) { return nil, net.ErrClosed }})
	b.Cleanup(pools.Close)
	message := opener(func(a *reach.Attempt) reach.Session { return performer(msgs.Session(a.Caller, a.Policy).Do) })
	w.Reach = reach.New(reach.Config{Deployed: w, Secrets: w, Drivers: map[string]reach.Driver{
		"http": opener(func(a *reach.Attempt) reach.Session {
			return performer(func(ctx context.Context, op *access.Operation) access.Answer {
				c, fault := a.Connection("api", access.TypeHTTP)
				if fault != nil {
					return access.Answer{Fault: fault}
				}
				return client.Do(ctx, a.Caller, a.Policy(), c, op)
			})
		}),
		"sql": opener(func(a *reach.Attempt) reach.Session {
			return pools.Session(a.Caller, func(name string) (*access.Connection, *access.Fault) { return a.Connection(name, access.TypeSQLite) })
		}),
		"kv":      opener(func(a *reach.Attempt) reach.Session { return performer(store.Session(a.Policy).Do) }),
		"publish": message, "request": message,
	}})
	return w
}

// Connection implements access.Deployed.
func (w *world) Connection(_, name string) *access.Connection { return w.connections[name] }

// Secret implements access.Deployed.
func (w *world) Secret(string, string) *access.Secret { return nil }

// Resolve implements access.Secrets.
func (w *world) Resolve(context.Context, string, string) (string, error) {
	return "", errors.New("there are no secrets")
}

type opener func(*reach.Attempt) reach.Session

// Open implements reach.Driver.
func (f opener) Open(a *reach.Attempt) reach.Session { return f(a) }

type performer func(context.Context, *access.Operation) access.Answer

// Do implements reach.Session.
func (f performer) Do(ctx context.Context, op *access.Operation) access.Answer { return f(ctx, op) }

// Close implements reach.Session.
func (f performer) Close() {}

// replaced performs the operation of the world, whichever a guest asks for: the guests need
// not know of each kind.
type replaced struct {
	*reach.Attempt
	world *world
}

// Do implements door.Session.
func (r replaced) Do(ctx context.Context, op *access.Operation) access.Answer {
	op.Kind, op.Head, op.Body = r.world.operation.Kind, r.world.operation.Head, r.world.operation.Body
	answer := r.Attempt.Do(ctx, op)
	if answer.Fault != nil {
		panic(answer.Fault.Message) // the benchmark is wrong
	}
	return answer
}

// host is a host with one guest, and calls of it.
func (w *world) host(b *testing.B, binary []byte) func(function, input string) error {
	grants := access.Grants{Connections: []string{"api", "rows"}, KV: map[string]access.Mode{"bench": access.ReadWrite}, Publish: []string{"bench.*"}, Request: []string{"bench.*"}}
	config := host.Config{Reach: func(call *run.Call) door.Session {
		caller := access.Caller{Flow: call.Flow, Run: string(call.Run), Task: call.Task, Attempt: call.Attempt}
		return replaced{w.Open(caller, grants, func(string) bool { return false }), w}
	}}
	h, call := newHost(b, config, binary)
	return func(function, input string) error {
		call := call
		call.Function, call.Input = function, json.RawMessage(input)
		result, err := h.Invoke(b.Context(), call)
		if err == nil && result.Failure != nil {
			err = result.Failure
		}
		return err
	}
}

// nativeOperation is an operation and the same natively.
type nativeOperation struct {
	name      string
	operation access.Operation
	native    func() error
}

func (w *world) operations(b *testing.B) []nativeOperation {
	ctx := b.Context()
	db, err := sql.Open("sqlite", w.database)
	must(b, err)
	b.Cleanup(func() { db.Close() })
	js, err := jetstream.New(w.nc)
	must(b, err)
	// The first put makes the bucket.
	_, err = js.CreateOrUpdateKeyValue(ctx, jetstream.KeyValueConfig{Bucket: "native"})
	must(b, err)
	w.bucket, err = js.KeyValue(ctx, "native")
	must(b, err)
	_, err = w.bucket.Put(ctx, "key", []byte("{}"))
	must(b, err)
	policy := access.Policy{Grants: access.Grants{KV: map[string]access.Mode{"bench": access.ReadWrite}, Publish: []string{"bench.*"}}}
	a := w.Open(access.Caller{Flow: "bench", Run: "r", Task: "t", Attempt: 1}, policy.Grants, nil)
	if f := a.Do(ctx, &access.Operation{Number: 1, Kind: access.KindKVPut, Head: []byte(`{"bucket":"bench","key":"key"}`), Body: []byte("{}")}).Fault; f != nil {
		b.Fatal(f)
	}
	a.Close()
	op := func(kind, head, body string) access.Operation {
		return access.Operation{Kind: kind, Head: []byte(head), Body: []byte(body)}
	}
	once := sync.OnceValue(func() *http.Client { return &http.Client{Transport: &http.Transport{}} })
	b.Cleanup(func() { once().CloseIdleConnections() })
	return []nativeOperation{
		{"http", op(access.KindHTTP, `{"connection":"api","url":"/x"}`, ""), func() error {
			r, err := once().Get(w.url + "/x")
			if err != nil {
				return err
			}
			_, err = io.ReadAll(r.Body)
			return errors.Join(err, r.Body.Close())
		}},
		{"sqlite", op(access.KindSQLQuery, `{"connection":"rows","sql":"SELECT id, name FROM rows WHERE id = ?","args":[1]}`, ""), func() error {
			var id int
			var name string
			return db.QueryRowContext(ctx, "SELECT id, name FROM rows WHERE id = ?", 1).Scan(&id, &name)
		}},
		{"kv.get", op(access.KindKVGet, `{"bucket":"bench","key":"key"}`, ""), func() error {
			_, err := w.bucket.Get(ctx, "key")
			return err
		}},
		{"kv.put", op(access.KindKVPut, `{"bucket":"bench","key":"key"}`, "{}"), func() error {
			_, err := w.bucket.Put(ctx, "key", []byte("{}"))
			return err
		}},
		{"publish", op(access.KindPublish, `{"subject":"bench.said"}`, "{}"), func() error {
			return errors.Join(w.nc.Publish("bench.said", []byte("{}")), w.nc.FlushTimeout(time.Minute))
		}},
		{"request", op(access.KindRequest, `{"subject":"bench.ask"}`, "{}"), func() error {
			_, err := w.nc.RequestWithContext(ctx, "bench.ask", []byte("{}"))
			if err != nil {
				err = fmt.Errorf("request: %w", err)
			}
			return err
		}},
	}
}
