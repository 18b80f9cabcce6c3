package sqlreach_test

import (
	"context"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/flowhost/flowhost/run/access"
)

// dialect is the words in which databases differ.
type dialect struct {
	series string // rows n = 1 … %d
	sleep  string // a query that lasts
	arg    func(n int) string
	shared bool // statements may run while rows are read
}

// conformance holds for each database.
func conformance(t *testing.T, newRig func(testing.TB) *rig, d dialect) {
	for name, test := range map[string]func(*testing.T, *rig, dialect){
		"transactions": testTransactions, "left open": testLeftOpen, "pages": testPages, "errors": testErrors,
		"read only": testReadOnly, "deadline": testDeadline, "cancel": testCancel, "waiting": testWaiting, "at once": testAtOnce,
		"cursors": testCursors, "heads": testHeads, "close early": testCloseEarly,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			test(t, r, d)
		})
	}
	t.Run("corpus", func(t *testing.T) { t.Parallel(); testCorpus(t, newRig(t)) })
}

func (d dialect) insert() string {
	return "INSERT INTO things (id, name) VALUES (" + d.arg(1) + ", " + d.arg(2) + ")"
}

func table(a *attempt) {
	a.t.Helper()
	a.exec("CREATE TABLE things (id INTEGER PRIMARY KEY, name VARCHAR(100))")
}

func testTransactions(t *testing.T, r *rig, d dialect) {
	a, b := r.attempt(), r.attempt()
	table(a)
	a.must(access.KindSQLBegin, nil)
	a.exec(d.insert(), 1, "one")
	a.fails(access.CodeConflict, access.KindSQLBegin, nil)
	b.want("[]", "SELECT id FROM things")
	a.must(access.KindSQLCommit, nil)
	b.want("[[1]]", "SELECT id FROM things")
	a.must(access.KindSQLBegin, object{"isolation": "serializable"})
	a.exec(d.insert(), 2, "two")
	a.exec("SAVEPOINT here")
	a.exec(d.insert(), 3, "three")
	a.exec("ROLLBACK TO here")
	a.want("[[1],[2]]", "SELECT id FROM things ORDER BY id")
	a.must(access.KindSQLRollback, nil)
	b.want("[[1]]", "SELECT id FROM things")
	a.fails(access.CodeConflict, access.KindSQLCommit, nil)
	a.fails(access.CodeConflict, access.KindSQLRollback, nil)
	a.must(access.KindSQLBegin, object{"read_only": true})
	a.fails(access.CodeDenied, access.KindSQLExec, object{"sql": "DELETE FROM things"})
	a.must(access.KindSQLRollback, nil)
	a.exec("DELETE FROM things")
	a.fails(access.CodeInvalid, access.KindSQLBegin, object{"isolation": "chaos"})
}

// testLeftOpen ends an attempt in the middle of a transaction, with rows open.
func testLeftOpen(t *testing.T, r *rig, d dialect) {
	a := r.attempt()
	table(a)
	a.must(access.KindSQLBegin, nil)
	a.exec(d.insert(), 1, "one")
	a.must(access.KindSQLQuery, object{"sql": fmt.Sprintf(d.series, 100000), "page_rows": 1})
	a.Close()
	r.returned()
	b := r.attempt()
	b.want("[]", "SELECT id FROM things")
	if f := a.fails(access.CodeCanceled, access.KindSQLExec, object{"sql": d.insert(), "args": []any{2, "two"}}); f.Retryable {
		t.Errorf("%+v", f)
	}
}

func testPages(t *testing.T, r *rig, d dialect) {
	a := r.attempt()
	for _, c := range []struct{ rows, page, most, pages, want int }{
		{0, 0, 0, 1, 0}, {10, 0, 0, 1, 10}, {10, 5, 0, 2, 10}, {11, 5, 0, 3, 11}, {10, 0, 10, 1, 10}, {10, 3, 4, 2, 4}, {10, 1, 1, 1, 1},
	} {
		answer := a.must(access.KindSQLQuery, object{"sql": fmt.Sprintf(d.series, c.rows), "page_rows": c.page, "max_rows": c.most})
		pages, rows := 1, headOf(t, answer).Rows
		h := headOf(t, answer)
		for h.Cursor != 0 {
			h = headOf(t, a.must(access.KindSQLNext, object{"cursor": h.Cursor}))
			pages++
			rows += h.Rows
		}
		if pages != c.pages || rows != c.want || h.Truncated != (c.want < c.rows) {
			t.Errorf("%+v: %d pages, %d rows, truncated %v", c, pages, rows, h.Truncated)
		}
	}
	a.fails(access.CodeConflict, access.KindSQLNext, object{"cursor": 999})
	a.must(access.KindSQLClose, object{"cursor": 999})
}

// testCloseEarly leaves rows unread, few and many, within a transaction and without.
func testCloseEarly(t *testing.T, r *rig, d dialect) {
	a := r.attempt()
	for _, rows := range []int{10, 100000} {
		h := headOf(t, a.must(access.KindSQLQuery, object{"sql": fmt.Sprintf(d.series, rows), "page_rows": 2}))
		a.must(access.KindSQLClose, object{"cursor": h.Cursor})
		a.want("[[1]]", "SELECT 1")
		a.must(access.KindSQLBegin, nil)
		h = headOf(t, a.must(access.KindSQLQuery, object{"sql": fmt.Sprintf(d.series, rows), "page_rows": 2}))
		a.must(access.KindSQLClose, object{"cursor": h.Cursor})
		a.want("[[1]]", "SELECT 1")
		a.must(access.KindSQLCommit, nil)
	}
	a.Close()
	r.returned()
}

func testErrors(t *testing.T, r *rig, d dialect) {
	a := r.attempt()
	table(a)
	a.exec(d.insert(), 1, "one")
	for name, c := range map[string]struct {
		sql  string
		args []any
	}{
		"syntax":          {"SELECT FROM WHERE", nil},
		"no such table":   {"SELECT * FROM nowhere", nil},
		"constraint":      {d.insert(), []any{1, "again"}},
		"arguments":       {d.insert(), []any{2}},
		"a missing value": {"INSERT INTO things (id) VALUES (NULL), (1)", nil},
	} {
		f := a.fails(access.CodeRefused, access.KindSQLExec, object{"sql": c.sql, "args": c.args})
		if f.Retryable || name != "arguments" && f.Detail == "" || f.Target != "db" {
			t.Errorf("%s: %+v", name, f)
		}
	}
	a.want("[[1]]", "SELECT id FROM things")
	a.fails(access.CodeInvalid, access.KindSQLExec, object{"sql": d.insert(), "args": []any{1, []int{2}}})
	a.fails(access.CodeInvalid, access.KindSQLExec, object{"sql": "  -- nothing\n"})
	long := strings.Repeat("x", 700<<10)
	a.fails(access.CodeTooLarge, access.KindSQLQuery, object{"sql": "SELECT " + d.arg(1) + ", " + d.arg(2), "args": []any{long, long}})
	a.want("[[1]]", "SELECT id FROM things")
}

func testReadOnly(t *testing.T, r *rig, d dialect) {
	table(r.attempt())
	a := r.with(access.ReadOnly).attempt()
	f := a.fails(access.CodeDenied, access.KindSQLExec, object{"sql": d.insert(), "args": []any{1, "one"}})
	if f.Rule != `access = "ro"` || f.Add != `access = "rw"` {
		t.Errorf("%+v", f)
	}
	for _, within := range []bool{false, true} {
		if within {
			a.must(access.KindSQLBegin, object{"read_only": false})
		}
		a.want("[]", "SELECT id FROM things")
		// A statement that begins as a query does.
		answer := a.do(t.Context(), access.KindSQLQuery, object{"sql": "WITH x AS (SELECT 1) INSERT INTO things (id, name) SELECT 1, 'x'"})
		if answer.Fault == nil || answer.Fault.Code != access.CodeDenied {
			t.Errorf("%+v", answer.Fault)
		}
	}
	a.Close()
	r.attempt().want("[]", "SELECT id FROM things")
}

// testDeadline lets a statement sleep past the deadline.
func testDeadline(t *testing.T, r *rig, d dialect) {
	a := r.attempt()
	answer := a.do(soon(t), access.KindSQLQuery, object{"sql": d.sleep})
	if answer.Fault == nil || answer.Fault.Code != access.CodeTimeout || !answer.Fault.Retryable {
		t.Fatalf("%+v", answer.Fault)
	}
	a.want("[[1]]", "SELECT 1")
	a.must(access.KindSQLBegin, nil)
	if answer = a.do(soon(t), access.KindSQLExec, object{"sql": d.sleep}); answer.Fault == nil || answer.Fault.Code != access.CodeTimeout {
		t.Fatalf("%+v", answer.Fault)
	}
	a.fails(access.CodeConflict, access.KindSQLCommit, nil)
	a.Close()
	r.returned()
}

func testCancel(t *testing.T, r *rig, d dialect) {
	a := r.attempt()
	h := headOf(t, a.must(access.KindSQLQuery, object{"sql": fmt.Sprintf(d.series, 100000), "page_rows": 1}))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if answer := a.do(ctx, access.KindSQLNext, object{"cursor": h.Cursor}); answer.Fault == nil || answer.Fault.Code != access.CodeCanceled {
		t.Errorf("%+v", answer.Fault)
	}
	a.Close()
	r.returned()
}

// testWaiting has one connection for two attempts: it changes hands between operations,
// and not during a transaction.
func testWaiting(t *testing.T, r *rig, _ dialect) {
	r.conn.SQL.MaxOpen = 1
	a, b := r.attempt(), r.attempt()
	for range 5 {
		a.want("[[1]]", "SELECT 1")
		b.want("[[2]]", "SELECT 2")
	}
	a.must(access.KindSQLBegin, nil)
	answer := b.do(soon(t), access.KindSQLQuery, object{"sql": "SELECT 1"})
	if answer.Fault == nil || answer.Fault.Code != access.CodeTimeout {
		t.Errorf("%+v", answer.Fault)
	}
	a.must(access.KindSQLCommit, nil)
	b.want("[[2]]", "SELECT 2")
	a.Close()
	b.Close()
	r.returned()
	if got := r.pools.Stats()["db"].OpenConnections; got > 1 {
		t.Errorf("%d connections are open", got)
	}
}

// testAtOnce has many attempts with many operations, on few connections.
func testAtOnce(t *testing.T, r *rig, d dialect) {
	r.conn.SQL.MaxOpen = 3
	table(r.attempt())
	var all sync.WaitGroup
	for n := range 8 {
		a := r.attempt()
		for m := range 2 {
			all.Go(func() {
				for i := range 10 {
					a.want(fmt.Sprintf("[[%d]]", i), fmt.Sprintf("SELECT %d", i))
					a.exec(d.insert(), 1000*n+100*m+i, "x")
				}
			})
		}
		t.Cleanup(a.Close)
	}
	all.Wait()
	a := r.attempt()
	a.want("[[160]]", "SELECT count(*) FROM things")
	if got := r.pools.Stats()["db"].OpenConnections; got > 3 {
		t.Errorf("%d connections are open", got)
	}
}

func testCursors(t *testing.T, r *rig, d dialect) {
	a := r.attempt()
	query := object{"sql": fmt.Sprintf(d.series, 3), "page_rows": 1}
	first := headOf(t, a.must(access.KindSQLQuery, query))
	if !d.shared {
		a.fails(access.CodeConflict, access.KindSQLQuery, query)
		a.fails(access.CodeConflict, access.KindSQLExec, object{"sql": "SELECT 1"})
		a.fails(access.CodeConflict, access.KindSQLBegin, nil)
		a.must(access.KindSQLNext, object{"cursor": first.Cursor})
		if h := headOf(t, a.must(access.KindSQLNext, object{"cursor": first.Cursor})); h.Cursor != 0 {
			t.Errorf("%+v", h)
		}
		a.must(access.KindSQLQuery, query)
		return
	}
	for range 15 {
		a.must(access.KindSQLQuery, query)
	}
	a.fails(access.CodeTooLarge, access.KindSQLQuery, query)
	a.must(access.KindSQLClose, object{"cursor": first.Cursor})
	a.must(access.KindSQLQuery, query)
	a.fails(access.CodeConflict, access.KindSQLNext, object{"cursor": first.Cursor})
}

func testHeads(t *testing.T, r *rig, _ dialect) {
	a := r.attempt()
	for name, c := range map[string]struct{ kind, head string }{
		"no object":      {access.KindSQLQuery, `[]`},
		"no JSON":        {access.KindSQLQuery, `{`},
		"unknown member": {access.KindSQLQuery, `{"connection":"db","sql":"SELECT 1","dsn":"x"}`},
		"of others":      {access.KindSQLExec, `{"connection":"db","sql":"SELECT 1","page_rows":1}`},
		"wrong type":     {access.KindSQLExec, `{"connection":"db","sql":1}`},
		"no connection":  {access.KindSQLExec, `{"sql":"SELECT 1"}`},
		"negative":       {access.KindSQLQuery, `{"connection":"db","sql":"SELECT 1","page_rows":-1}`},
		"another kind":   {"sql.drop", `{"connection":"db"}`},
	} {
		answer := a.Do(t.Context(), &access.Operation{Kind: c.kind, Head: []byte(c.head)})
		if answer.Fault == nil || answer.Fault.Code != access.CodeInvalid {
			t.Errorf("%s: %+v", name, answer.Fault)
		}
	}
	answer := a.Do(t.Context(), &access.Operation{Kind: access.KindSQLQuery, Head: []byte(`{"connection":"other","sql":"SELECT 1"}`)})
	if answer.Fault == nil || answer.Fault.Code != access.CodeDenied {
		t.Errorf("%+v", answer.Fault)
	}
}

// corpusCase is a statement that is refused.
type corpusCase struct{ name, sql, code string }

// corpus is what each database refuses. Those of one database are with its tests.
var corpus = []corpusCase{
	{"several statements", "SELECT 1; DROP TABLE things", access.CodeDenied},
	{"several statements after a comment", "SELECT 1 /* ; */ ; -- x\n DELETE FROM things", access.CodeDenied},
	{"begin", "BEGIN", access.CodeDenied},
	{"begin after comments", "/* x */ -- y\n  bEgIn", access.CodeDenied},
	{"start", "START TRANSACTION", access.CodeDenied},
	{"commit", "COMMIT", access.CodeDenied},
	{"rollback", "ROLLBACK", access.CodeDenied},
	{"rollback and chain", "ROLLBACK AND CHAIN", access.CodeDenied},
	{"end", "END", access.CodeDenied},
	{"set", "SET x = 1", access.CodeDenied},
	{"set role", "SET ROLE postgres", access.CodeDenied},
	{"set transaction_read_only", "SET transaction_read_only = off", access.CodeDenied},
	{"set in parentheses", "(SET ROLE postgres)", access.CodeDenied},
	{"reset", "RESET ALL", access.CodeDenied},
	{"discard", "DISCARD ALL", access.CodeDenied},
	{"attach", "ATTACH 'other.db' AS other", access.CodeDenied},
	{"attach database", "ATTACH DATABASE ':memory:' AS x", access.CodeDenied},
	{"detach", "DETACH main", access.CodeDenied},
	{"pragma", "PRAGMA query_only = OFF", access.CodeDenied},
	{"copy to program", "COPY things TO PROGRAM 'id'", access.CodeDenied},
	{"copy query to program", "COPY (SELECT 1) TO PROGRAM 'id'", access.CodeDenied},
	{"copy from program", "COPY things FROM PROGRAM 'id'", access.CodeDenied},
	{"copy to file", "COPY things TO '/tmp/x'", access.CodeDenied},
	{"copy from file", "COPY things FROM '/etc/passwd'", access.CodeDenied},
	{"load data local", "LOAD DATA LOCAL INFILE '/etc/passwd' INTO TABLE things", access.CodeDenied},
	{"load data", "LOAD DATA INFILE '/etc/passwd' INTO TABLE things", access.CodeDenied},
	{"load", "LOAD 'library'", access.CodeDenied},
	{"vacuum into", "VACUUM INTO 'copy.db'", access.CodeDenied},
	{"listen", "LISTEN x", access.CodeDenied},
	{"notify", "NOTIFY x", access.CodeDenied},
	{"prepare", "PREPARE p AS SELECT 1", access.CodeDenied},
	{"execute", "EXECUTE p", access.CodeDenied},
	{"deallocate", "DEALLOCATE ALL", access.CodeDenied},
	{"declare", "DECLARE c CURSOR WITH HOLD FOR SELECT 1", access.CodeDenied},
	{"use", "USE mysql", access.CodeDenied},
	{"kill", "KILL 1", access.CodeDenied},
	{"flush", "FLUSH TABLES", access.CodeDenied},
	{"shutdown", "SHUTDOWN", access.CodeDenied},
	{"install", "INSTALL PLUGIN x SONAME 'y'", access.CodeDenied},
	{"alter system", "ALTER SYSTEM SET work_mem = '1MB'", access.CodeDenied},
	{"create server", "CREATE SERVER s FOREIGN DATA WRAPPER mysql OPTIONS (HOST 'x')", access.CodeDenied},
	{"create subscription", "CREATE SUBSCRIPTION s CONNECTION 'host=x' PUBLICATION p", access.CodeDenied},
	{"create extension", "CREATE EXTENSION dblink", access.CodeDenied},
	{"savepoint outside", "SAVEPOINT x", access.CodeDenied},
	{"no keyword", "? SELECT 1", access.CodeDenied},
	{"a quoted keyword", `"SELECT" 1`, access.CodeDenied},
	{"with nothing", "WITH x AS (SELECT 1)", access.CodeDenied},
	{"with set", "WITH x AS (SELECT 1) SET ROLE postgres", access.CodeDenied},
}

func testCorpus(t *testing.T, r *rig) {
	table(r.attempt())
	a := r.attempt()
	for _, c := range corpus {
		t.Run(c.name, func(t *testing.T) {
			for _, kind := range []string{access.KindSQLExec, access.KindSQLQuery} {
				answer := a.do(t.Context(), kind, object{"sql": c.sql})
				if answer.Fault == nil || answer.Fault.Code != c.code || answer.Fault.Retryable {
					t.Errorf("%s: %s %+v", kind, answer.Head, answer.Fault)
				}
			}
		})
	}
	a.want("[]", "SELECT id FROM things")
}

// testMillions reads a result of so many rows that they would not fit.
func testMillions(t *testing.T, r *rig, d dialect, rows int) {
	a := r.attempt()
	answer := a.must(access.KindSQLQuery, object{"sql": fmt.Sprintf(d.series, rows)})
	h := headOf(t, answer)
	total, pages, most := h.Rows, 1, uint64(0)
	for ; h.Cursor != 0; pages++ {
		answer = a.must(access.KindSQLNext, object{"cursor": h.Cursor})
		h = headOf(t, answer)
		total += h.Rows
		if len(answer.Body) > 1<<20 {
			t.Fatalf("a page of %d bytes", len(answer.Body))
		}
		if pages%8 == 2 {
			var m runtime.MemStats
			runtime.GC()
			runtime.ReadMemStats(&m)
			most = max(most, m.HeapAlloc)
		}
	}
	t.Logf("%d rows in %d pages, at most %d KB of heap", total, pages, most>>10)
	if total != rows || most > 64<<20 {
		t.Errorf("%d rows, at most %d bytes of heap", total, most)
	}
}
