//go:build databases && linux

package sqlreach_test

import (
	"context"
	"database/sql"
	"fmt"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/flowhost/flowhost/internal/testkit/dbserver"
	"github.com/flowhost/flowhost/run/access"
)

var postgresDialect = dialect{
	series: "SELECT n FROM generate_series(1, %d) AS s(n)",
	sleep:  "SELECT pg_sleep(60)",
	arg:    func(n int) string { return fmt.Sprintf("$%d", n) },
}

var mariaDialect = dialect{
	series: "SELECT seq FROM seq_1_to_10000000 WHERE seq <= %d",
	sleep:  "SELECT SLEEP(60)",
	arg:    func(int) string { return "?" },
}

var names atomic.Int64

// postgresRig has a schema of its own, which the DSN names.
func postgresRig(t testing.TB, s *dbserver.Server) *rig {
	t.Helper()
	schema := fmt.Sprintf("s%d", names.Add(1))
	r := serverRig(t, access.TypePostgres, s.PostgresDSN())
	a := r.attempt()
	a.exec("CREATE SCHEMA " + schema)
	a.Close()
	r.conn.SQL = &access.SQLConnection{DSN: access.Value{Text: s.PostgresDSN() + "?search_path=" + schema}, Access: access.ReadWrite}
	return r
}

// mariaRig has a database of its own.
func mariaRig(t testing.TB, s *dbserver.Server) *rig {
	t.Helper()
	name := fmt.Sprintf("d%d", names.Add(1))
	r := serverRig(t, access.TypeMySQL, s.MariaDSN())
	a := r.attempt()
	a.exec("CREATE DATABASE " + name)
	a.Close()
	r.conn.SQL = &access.SQLConnection{DSN: access.Value{Text: strings.ReplaceAll(s.MariaDSN(), database, name)}, Access: access.ReadWrite}
	return r
}

func serverRig(t testing.TB, kind, dsn string) *rig {
	return &rig{t: t, pools: newPools(t, nil), conn: access.Connection{
		Name: "db", Type: kind, Folder: t.TempDir(), Operator: true,
		SQL: &access.SQLConnection{DSN: access.Value{Text: dsn}, Access: access.ReadWrite},
	}}
}

func newPostgres(t testing.TB) *rig { return postgresRig(t, postgresServer.get(t)) }
func newMariaDB(t testing.TB) *rig  { return mariaRig(t, mariaServer.get(t)) }

func TestPostgres(t *testing.T) {
	t.Parallel()
	conformance(t, newPostgres, postgresDialect)
}

func TestMariaDB(t *testing.T) {
	t.Parallel()
	conformance(t, newMariaDB, mariaDialect)
}

func TestMillions(t *testing.T) {
	if testing.Short() {
		t.Skip("takes minutes under the race detector")
	}
	t.Run("postgres", func(t *testing.T) { testMillions(t, newPostgres(t), postgresDialect, 10_000_000) })
	t.Run("mariadb", func(t *testing.T) { testMillions(t, newMariaDB(t), mariaDialect, 10_000_000) })
	t.Run("sqlite", func(t *testing.T) { testMillions(t, sqliteRig(t), sqliteDialect, 10_000_000) })
}

func TestPostgresValues(t *testing.T) {
	t.Parallel()
	a := newPostgres(t).attempt()
	answer := a.must(access.KindSQLQuery, object{"sql": `SELECT true, 1::int2, 9223372036854775807::int8, 1.5::float4, 'NaN'::float8, 12.50::numeric, 'a'::text, '\x00ff'::bytea,
		'2026-01-02 03:04:05.123456+02'::timestamptz, '2026-01-02 03:04:05'::timestamp, '2026-01-02'::date, 'infinity'::date,
		'00000000-0000-0000-0000-00000000000a'::uuid, '{"a": 1}'::jsonb, '{1,2}'::int4[], '1 day'::interval, NULL::text, 3::float8`})
	want := `[[true,1,{"int":"9223372036854775807"},1.5,{"float":"NaN"},"12.50","a",{"bytes":"AP8="},` +
		`"2026-01-02T01:04:05.123456Z","2026-01-02T03:04:05Z","2026-01-02","infinity",` +
		`"00000000-0000-0000-0000-00000000000a","{\"a\": 1}","{1,2}","1 day",null,3.0]]`
	if string(answer.Body) != want {
		t.Errorf("\n got %s\nwant %s", answer.Body, want)
	}
	if h := headOf(t, answer); h.Columns[5].Type != "NUMERIC" || h.Columns[12].Type != "UUID" || h.Columns[8].Type != "TIMESTAMPTZ" {
		t.Errorf("%+v", h.Columns)
	}
	a.want(`[["12.50","2026-01-02T03:04:05.123456Z",{"bytes":"AP8="},"2026-01-02","x",7,null,true,1.5]]`,
		"SELECT $1::numeric, $2::timestamptz, $3::bytea, $4::date, $5::text, $6::int8, $7::text, $8::bool, $9::float8",
		object{"decimal": "12.50"}, object{"time": "2026-01-02T03:04:05.123456Z"}, object{"bytes": "AP8="}, "2026-01-02", "x", 7, nil, true, 1.5)
}

func TestMariaDBValues(t *testing.T) {
	t.Parallel()
	a := newMariaDB(t).attempt()
	a.exec("CREATE TABLE v (i BIGINT UNSIGNED, s SMALLINT, f FLOAT, d DOUBLE, n DECIMAL(10,2), t TEXT, b BLOB, ts TIMESTAMP(6), dt DATETIME, da DATE, ti TIME, j JSON, u UUID, y YEAR)")
	a.exec("INSERT INTO v VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", object{"int": "18446744073709551615"}, -1, 1.5, 3.0, object{"decimal": "12.50"}, "é", object{"bytes": "AP8="},
		object{"time": "2026-01-02T05:04:05.123456+02:00"}, object{"time": "2026-01-02T03:04:05Z"}, "2026-01-02", "12:30:00", `{"a": 1}`, "00000000-0000-0000-0000-00000000000a", 2026)
	want := `[[{"int":"18446744073709551615"},-1,1.5,3.0,"12.50","é",{"bytes":"AP8="},"2026-01-02T03:04:05.123456Z","2026-01-02T03:04:05Z","2026-01-02","12:30:00","{\"a\": 1}",` +
		`"00000000-0000-0000-0000-00000000000a",2026]]`
	a.want(want, "SELECT * FROM v")                 // by text
	a.want(want, "SELECT * FROM v WHERE s = ?", -1) // by the binary protocol
	a.want(`[["2026-01-02T03:04:05Z"]]`, "SELECT dt FROM v WHERE dt = ?", object{"time": "2026-01-02T03:04:05Z"})
	if got := string(a.exec("UPDATE v SET s = 1").Head); got != `{"rows_affected":1,"last_insert_id":0}` {
		t.Error(got)
	}
}

// TestPostgresCorpus has what begins as a harmless statement.
func TestPostgresCorpus(t *testing.T) {
	t.Parallel()
	r := newPostgres(t)
	table(r.attempt())
	ro := r.with(access.ReadOnly).attempt()
	insert := object{"sql": "WITH x AS (INSERT INTO things VALUES (1, 'x') RETURNING id) SELECT id FROM x"}
	for name, text := range map[string]string{
		"default": "SELECT set_config('default_transaction_read_only', 'off', false)",
		"session": "SELECT set_config('session_characteristics', 'off', false)",
		"now":     "SELECT set_config('transaction_read_only', 'off', false)",
		"local":   "SELECT set_config('transaction_read_only', 'off', true)",
		"role":    "SELECT set_config('role', 'none', false)",
	} {
		ro.do(t.Context(), access.KindSQLQuery, object{"sql": text})
		if answer := ro.do(t.Context(), access.KindSQLQuery, insert); answer.Fault == nil || answer.Fault.Code != access.CodeDenied {
			t.Errorf("%s: %s %+v", name, answer.Body, answer.Fault)
		}
		ro.must(access.KindSQLBegin, nil)
		ro.do(t.Context(), access.KindSQLQuery, object{"sql": text})
		if answer := ro.do(t.Context(), access.KindSQLQuery, insert); answer.Fault == nil {
			t.Errorf("%s within: %s", name, answer.Body)
		}
		ro.must(access.KindSQLRollback, nil)
	}
	ro.fails(access.CodeDenied, access.KindSQLExec, object{"sql": "DO $$ BEGIN DELETE FROM things; END $$"})
	ro.fails(access.CodeDenied, access.KindSQLQuery, object{"sql": "SELECT * INTO other FROM things"})
	ro.fails(access.CodeDenied, access.KindSQLQuery, object{"sql": "EXPLAIN ANALYZE INSERT INTO things VALUES (1, 'x')"})
	ro.fails(access.CodeDenied, access.KindSQLQuery, object{"sql": "SELECT 1 FROM things FOR UPDATE"})

	// Where the scanner and the server disagree on where a string ends, the server decides.
	rw := r.attempt()
	rw.exec("SELECT set_config('standard_conforming_strings', 'off', false)")
	for _, kind := range []string{access.KindSQLExec, access.KindSQLQuery} {
		rw.fails(access.CodeDenied, kind, object{"sql": `SELECT 'a'; DELETE FROM things`})
		rw.fails(access.CodeRefused, kind, object{"sql": `SELECT 'a\''; INSERT INTO things VALUES (7, 'x') --'`})
		rw.fails(access.CodeRefused, kind, object{"sql": "CREATE TABLE z (x int); INSERT INTO things VALUES (7, 'x')"})
	}
	rw.want("[]", "SELECT * FROM things")
}

func TestPostgresSessionsAreApart(t *testing.T) {
	t.Parallel()
	r := newPostgres(t)
	r.conn.SQL.MaxOpen = 1
	a := r.attempt()
	before := a.rows("SELECT current_setting('search_path'), current_setting('work_mem'), current_user, pg_backend_pid()")
	a.exec("CREATE TEMP TABLE mine (x int)")
	a.exec("CREATE SEQUENCE s")
	a.rows("SELECT nextval('s'), set_config('search_path', 'pg_catalog', false), set_config('work_mem', '1MB', false), set_config('my.secret', 'of a', false), pg_advisory_lock(1)")
	a.Close()
	b := r.attempt()
	b.want(before, "SELECT current_setting('search_path'), current_setting('work_mem'), current_user, pg_backend_pid()")
	b.want("[[0]]", "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND database = (SELECT oid FROM pg_database WHERE datname = current_database())")
	b.fails(access.CodeRefused, access.KindSQLQuery, object{"sql": "SELECT * FROM mine"})
	b.fails(access.CodeRefused, access.KindSQLQuery, object{"sql": "SELECT lastval()"})
	b.want(`[[""]]`, "SELECT coalesce(current_setting('my.secret', true), '')")
}

func TestMariaDBSessionsAreApart(t *testing.T) {
	t.Parallel()
	r := newMariaDB(t)
	r.conn.SQL.MaxOpen = 1
	for _, text := range []string{"SELECT @secret := 'of a'", "CREATE TEMPORARY TABLE mine (x int)", "SELECT GET_LOCK('l', 0)"} {
		a := r.attempt()
		id := a.rows("SELECT CONNECTION_ID()")
		a.rows(text)
		a.Close()
		b := r.attempt()
		if got := b.rows("SELECT CONNECTION_ID()"); got == id {
			t.Errorf("%s: the connection was used again", text)
		}
		b.Close()
	}
	a := r.attempt()
	id := a.rows("SELECT CONNECTION_ID()")
	a.Close()
	r.attempt().want(id, "SELECT CONNECTION_ID()")
}

func TestMariaDBCorpus(t *testing.T) {
	t.Parallel()
	r := newMariaDB(t)
	table(r.attempt())
	for _, mode := range []access.Mode{access.ReadOnly, access.ReadWrite} {
		a := r.with(mode).attempt()
		for _, text := range []string{
			"SELECT 1 INTO OUTFILE '/tmp/x'", "SELECT 1 INTO/**/DUMPFILE '/tmp/x'", "SELECT LOAD_FILE('/etc/passwd')", "/*!50000 SET */ @x = 1",
			"SELECT 1 /*!, SLEEP(1) */", "/*M!100000 DROP TABLE things */", "# x\nSET @x = 1", "SET STATEMENT max_statement_time = 0 FOR SELECT 1",
			"XA START 'x'", "LOCK TABLES things WRITE", "HANDLER things OPEN", "CHANGE MASTER TO MASTER_HOST = 'x'", "RESET MASTER",
		} {
			a.fails(access.CodeDenied, access.KindSQLExec, object{"sql": text})
		}
		if mode == access.ReadWrite {
			a.fails(access.CodeRefused, access.KindSQLExec, object{"sql": "CREATE TABLE z (x int); INSERT INTO things VALUES (7, 'x')"})
		}
		a.want("[]", "SELECT * FROM things")
	}
	a := r.with(access.ReadOnly).attempt()
	a.fails(access.CodeDenied, access.KindSQLExec, object{"sql": "CALL x()"})
	a.fails(access.CodeDenied, access.KindSQLQuery, object{"sql": "EXPLAIN FORMAT=JSON SELECT 1 INTO OUTFILE '/tmp/x'"})
}

// TestDeadlock lets two transactions take locks crosswise.
func TestDeadlock(t *testing.T) {
	t.Parallel()
	for name, newRig := range map[string]func(testing.TB) *rig{"postgres": newPostgres, "mariadb": newMariaDB} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			a, b := r.attempt(), r.attempt()
			table(a)
			a.exec("INSERT INTO things VALUES (1, 'a'), (2, 'b')")
			a.must(access.KindSQLBegin, nil)
			b.must(access.KindSQLBegin, nil)
			a.exec("UPDATE things SET name = 'x' WHERE id = 1")
			b.exec("UPDATE things SET name = 'x' WHERE id = 2")
			answers := make(chan access.Answer, 2)
			go func() {
				answers <- a.do(t.Context(), access.KindSQLExec, object{"sql": "UPDATE things SET name = 'y' WHERE id = 2"})
			}()
			go func() {
				answers <- b.do(t.Context(), access.KindSQLExec, object{"sql": "UPDATE things SET name = 'y' WHERE id = 1"})
			}()
			failed := 0
			for range 2 {
				if f := (<-answers).Fault; f != nil {
					failed++
					if f.Code != access.CodeConflict || !f.Retryable || !strings.Contains(f.Detail, "40") {
						t.Errorf("%+v", f)
					}
				}
			}
			if failed != 1 {
				t.Fatalf("%d of 2 failed", failed)
			}
			// The one that failed runs nothing more, and commits nothing.
			committed := 0
			for _, one := range []*attempt{a, b} {
				if one.do(t.Context(), access.KindSQLCommit, nil).Fault == nil {
					committed++
				}
			}
			if committed != 1 {
				t.Errorf("%d committed", committed)
			}
		})
	}
}

// TestFailedTransactionIsNotCommitted commits a transaction that failed before.
func TestFailedTransactionIsNotCommitted(t *testing.T) {
	t.Parallel()
	r := newPostgres(t)
	a := r.attempt()
	table(a)
	a.must(access.KindSQLBegin, nil)
	a.exec("INSERT INTO things VALUES (1, 'a')")
	a.fails(access.CodeRefused, access.KindSQLExec, object{"sql": "INSERT INTO things VALUES (1, 'a')"})
	a.fails(access.CodeConflict, access.KindSQLCommit, nil)
	a.want("[]", "SELECT * FROM things")
}

// TestCanceledOnServer checks that the server stops, too.
func TestCanceledOnServer(t *testing.T) {
	t.Parallel()
	r := newPostgres(t)
	a, b := r.attempt(), r.attempt()
	ctx, cancel := context.WithCancel(t.Context())
	answers := make(chan access.Answer, 1)
	go func() {
		answers <- a.do(ctx, access.KindSQLQuery, object{"sql": "SELECT pg_sleep(60), 'of this test'"})
	}()
	running := "SELECT count(*) FROM pg_stat_activity WHERE state = 'active' AND query LIKE '%of this test%' AND pid <> pg_backend_pid()"
	for b.rows(running) == "[[0]]" {
	}
	cancel()
	if f := (<-answers).Fault; f == nil || f.Code != access.CodeCanceled {
		t.Errorf("%+v", f)
	}
	for b.rows(running) != "[[0]]" {
	}
	a.Close()
	b.Close()
	r.returned()
}

// TestKilledServer crashes a server in the middle of a query, of a transaction and of a
// result.
func TestKilledServer(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		start   func() (*dbserver.Server, error)
		newRig  func(testing.TB, *dbserver.Server) *rig
		d       dialect
		running string
	}{
		"postgres": {dbserver.StartPostgres, postgresRig, postgresDialect, "SELECT count(*) FROM pg_stat_activity WHERE state = 'active' AND query LIKE '%pg_sleep(60)%' AND pid <> pg_backend_pid()"},
		"mariadb":  {dbserver.StartMariaDB, mariaRig, mariaDialect, "SELECT count(*) FROM information_schema.processlist WHERE info LIKE '%SLEEP(60)%' AND id <> CONNECTION_ID()"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, err := c.start()
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(s.Close)
			r := c.newRig(t, s)
			inQuery, inTx, inRows, watch := r.attempt(), r.attempt(), r.attempt(), r.attempt()
			table(watch)
			inTx.must(access.KindSQLBegin, nil)
			inTx.exec(c.d.insert(), 1, "one")
			cursor := headOf(t, inRows.must(access.KindSQLQuery, object{"sql": fmt.Sprintf(c.d.series, 5_000_000)})).Cursor
			answers := make(chan access.Answer, 1)
			go func() { answers <- inQuery.do(t.Context(), access.KindSQLQuery, object{"sql": c.d.sleep}) }()
			for watch.rows(c.running) == "[[0]]" {
			}
			s.Kill()
			check := func(f *access.Fault) {
				t.Helper()
				if f == nil || f.Code != access.CodeUnreachable || !f.Retryable {
					t.Errorf("%+v", f)
					return
				}
				hidden(t, f.Message+f.Detail+f.Target+f.Add, user, password, database, "127.0.0.1", fmt.Sprint(s.Port))
			}
			check((<-answers).Fault)
			check(inTx.do(t.Context(), access.KindSQLExec, object{"sql": c.d.insert(), "args": []any{2, "two"}}).Fault)
			var f *access.Fault
			for f == nil { // what was sent before still arrives
				answer := inRows.do(t.Context(), access.KindSQLNext, object{"cursor": cursor})
				f = answer.Fault
			}
			check(f)
			check(r.attempt().do(t.Context(), access.KindSQLQuery, object{"sql": "SELECT 1"}).Fault)
			inTx.fails(access.CodeConflict, access.KindSQLCommit, nil)
			for _, a := range []*attempt{inQuery, inTx, inRows, watch} {
				a.Close()
			}
			r.returned()
			if err := s.Start(); err != nil {
				t.Fatal(err)
			}
			next := r.attempt()
			next.want("[]", "SELECT * FROM things")
			next.Close()
			r.returned()
		})
	}
}

// TestIdleConnectionsBreak has a server end the connections that nobody uses, at once and by a
// restart: the next attempt gets another one, and does not notice.
func TestIdleConnectionsBreak(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		start  func() (*dbserver.Server, error)
		newRig func(testing.TB, *dbserver.Server) *rig
		admin  func(*dbserver.Server) (*sql.DB, error)
		list   string // statements that end connections
	}{
		"postgres": {dbserver.StartPostgres, postgresRig, func(s *dbserver.Server) (*sql.DB, error) { return sql.Open("pgx", s.PostgresDSN()+"?sslmode=disable") },
			"SELECT 'SELECT pg_terminate_backend(' || pid || ')' FROM pg_stat_activity WHERE application_name = 'flowhost'"},
		"mariadb": {dbserver.StartMariaDB, mariaRig, func(s *dbserver.Server) (*sql.DB, error) { return sql.Open("mysql", s.MariaDSN()) },
			"SELECT CONCAT('KILL ', id) FROM information_schema.processlist WHERE user = '" + user + "' AND id <> CONNECTION_ID()"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, err := c.start()
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(s.Close)
			r := c.newRig(t, s)
			unused := func() {
				var all []*attempt
				for range 5 {
					a := r.attempt()
					a.want("[[1]]", "SELECT 1")
					all = append(all, a)
				}
				for _, a := range all {
					a.Close()
				}
			}
			admin, err := c.admin(s)
			if err != nil {
				t.Fatal(err)
			}
			unused()
			unused() // the driver trusts a connection that was looked at within a second
			if n := endAll(t, admin, c.list); n < 5 {
				t.Errorf("%d connections were ended, want 5 or more", n)
			}
			if err := admin.Close(); err != nil {
				t.Error(err)
			}
			next(t, r)
			unused()
			s.Kill()
			if err := s.Start(); err != nil {
				t.Fatal(err)
			}
			next(t, r)
		})
	}
}

// next is an attempt with a deadline, as they have.
func next(t *testing.T, r *rig) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if answer := r.attempt().do(ctx, access.KindSQLQuery, object{"sql": "SELECT 1"}); answer.Fault != nil {
		t.Errorf("%+v", answer.Fault)
	}
}

// endAll runs the statements that a query lists.
func endAll(t *testing.T, admin *sql.DB, list string) (n int) {
	t.Helper()
	admin.SetMaxOpenConns(1)
	var all []string
	rows, err := admin.QueryContext(t.Context(), list)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	for rows.Next() {
		var text string
		if err := rows.Scan(&text); err != nil {
			t.Fatal(err)
		}
		all = append(all, text)
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	for _, text := range all {
		if _, err := admin.ExecContext(t.Context(), text); err != nil {
			t.Fatal(err)
		}
	}
	for left := 1; left > 0; { // servers end them soon
		if err := admin.QueryRowContext(t.Context(), "SELECT count(*) FROM ("+list+") AS x").Scan(&left); err != nil {
			t.Fatal(err)
		}
	}
	return len(all)
}

// TestConnecting has what goes wrong before a statement runs, and TLS.
func TestConnecting(t *testing.T) {
	t.Parallel()
	pg, maria := postgresServer.get(t), mariaServer.get(t)
	pools := newPools(t, nil)
	wrong := func(dsn, old, new string) string { return strings.Replace(dsn, old, new, 1) }
	verified := &access.TLS{CA: "ca.pem", ServerName: "db.test"}
	escaped := url.QueryEscape(password)
	for name, c := range map[string]struct {
		dsn  string
		kind string
		flow bool // declared by a flow, not by the operator
		tls  *access.TLS
		code string
		says string
	}{
		"postgres":                {dsn: pg.PostgresDSN()},
		"postgres pairs":          {dsn: fmt.Sprintf(`host=127.0.0.1 port=%d user=%s password='%s' dbname = %s sslmode=disable`, pg.Port, user, password, database)},
		"postgres socket":         {dsn: fmt.Sprintf("host=%s port=%d user=%s password='%s' dbname=%s", pg.Dir, pg.Port, user, password, database)},
		"postgres socket of flow": {dsn: fmt.Sprintf("host=%s port=%d user=%s password='%s' dbname=%s", pg.Dir, pg.Port, user, password, database), flow: true, code: access.CodeDenied},
		"postgres password":       {dsn: wrong(pg.PostgresDSN(), ":s3cret", ":guess"), code: access.CodeRefused},
		"postgres database":       {dsn: wrong(pg.PostgresDSN(), database, "nowhere_q"), code: access.CodeRefused},
		"postgres port":           {dsn: wrong(pg.PostgresDSN(), fmt.Sprint(pg.Port), "1"), code: access.CodeUnreachable},
		"postgres default TLS":    {dsn: pg.PostgresDSN(), flow: true, code: access.CodeRefused, says: "certificate"},
		"postgres authority":      {dsn: pg.PostgresDSN(), tls: &access.TLS{CA: "ca.pem"}, code: access.CodeRefused, says: "server_name"},
		"postgres verified":       {dsn: pg.PostgresDSN(), tls: verified, flow: true},
		"postgres require":        {dsn: pg.PostgresDSN(), tls: &access.TLS{Mode: access.TLSRequire}, flow: true},
		"postgres require in DSN": {dsn: pg.PostgresDSN() + "?sslmode=require", code: access.CodeInvalid, says: `mode = "require"`},
		"postgres prefer":         {dsn: pg.PostgresDSN() + "?sslmode=prefer", code: access.CodeInvalid},
		"postgres ca outside":     {dsn: pg.PostgresDSN(), tls: &access.TLS{CA: "../ca.pem"}, flow: true, code: access.CodeInternal},
		"mariadb":                 {dsn: maria.MariaDSN(), kind: access.TypeMySQL},
		"mariadb URL":             {dsn: fmt.Sprintf("mysql://%s:%s@127.0.0.1:%d/%s?tls=false", user, escaped, maria.Port, database), kind: access.TypeMySQL},
		"mariadb socket":          {dsn: fmt.Sprintf("%s:%s@unix(%s/sock)/%s", user, password, maria.Dir, database), kind: access.TypeMySQL},
		"mariadb password":        {dsn: wrong(maria.MariaDSN(), ":s3cret", ":guess"), kind: access.TypeMySQL, code: access.CodeRefused},
		"mariadb database":        {dsn: wrong(maria.MariaDSN(), database, "nowhere_q"), kind: access.TypeMySQL, code: access.CodeRefused},
		"mariadb port":            {dsn: wrong(maria.MariaDSN(), fmt.Sprint(maria.Port), "1"), kind: access.TypeMySQL, code: access.CodeUnreachable},
		"mariadb default TLS":     {dsn: maria.MariaDSN(), kind: access.TypeMySQL, flow: true, code: access.CodeRefused, says: "certificate"},
		"mariadb verified":        {dsn: maria.MariaDSN(), kind: access.TypeMySQL, tls: verified, flow: true},
		"mariadb require":         {dsn: maria.MariaDSN(), kind: access.TypeMySQL, tls: &access.TLS{Mode: access.TLSRequire}, flow: true},
		"mariadb multiStatements": {dsn: maria.MariaDSN() + "?multiStatements=true", kind: access.TypeMySQL},
		"mariadb allowAllFiles":   {dsn: maria.MariaDSN() + "?allowAllFiles=true", kind: access.TypeMySQL, code: access.CodeInvalid},
		"mariadb cleartext":       {dsn: maria.MariaDSN() + "?allowCleartextPasswords=true", kind: access.TypeMySQL, code: access.CodeInvalid},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			kind, dir := c.kind, maria.Dir
			if kind == "" {
				kind, dir = access.TypePostgres, pg.Dir
			}
			conn := &access.Connection{Name: "db", Type: kind, Folder: dir, Operator: !c.flow, TLS: c.tls, SQL: &access.SQLConnection{DSN: access.Value{Text: c.dsn}}}
			err := pools.Test(t.Context(), "flow", conn)
			if c.code == "" {
				if err != nil {
					t.Error(err)
				}
				return
			}
			if err == nil {
				t.Fatal("no error")
			}
			f := faultOf(t, err)
			if f.Code != c.code || !strings.Contains(f.Message, c.says) {
				t.Errorf("%+v", f)
			}
			hidden(t, fmt.Sprintf("%+v", withoutInside(f)), user, "s3cret", "guess", database, "nowhere_q", "127.0.0.1", pg.Dir, maria.Dir, fmt.Sprint(pg.Port), fmt.Sprint(maria.Port))
		})
	}
}

// TestErrorsOfServersHideTheDSN has statements fail with messages that quote the database and
// the user.
func TestErrorsOfServersHideTheDSN(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		rig        *rig
		statements []string
		quotes     string
	}{
		"postgres": {newPostgres(t), []string{"SELECT * FROM " + database + "_x.public.t", "SELECT current_user::int", "SELECT (current_database())::int", "SELECT inet_server_port()::text::date", "CREATE DATABASE " + database}, "…"},
		"mariadb":  {newMariaDB(t), []string{"SELECT * FROM nowhere", "DROP TABLE nowhere"}, "…"},
	} {
		a, quoted := tt.rig.attempt(), false
		for _, text := range tt.statements {
			answer := a.do(t.Context(), access.KindSQLExec, object{"sql": text})
			if answer.Fault == nil {
				t.Errorf("%s: %s succeeds", name, text)
				continue
			}
			quoted = quoted || strings.Contains(answer.Fault.Message, tt.quotes)
			hidden(t, strings.ReplaceAll(string(answer.Head), database+"_x", ""), user, "s3cret", database, "127.0.0.1")
		}
		if !quoted {
			t.Errorf("%s: no message has quoted the DSN", name)
		}
	}
}

// TestRotation changes the secret of the DSN: sessions that are open keep the old
// connection, and the old pool goes with them.
func TestRotation(t *testing.T) {
	t.Parallel()
	pg := postgresServer.get(t)
	s := &secrets{}
	s.set("dsn", pg.PostgresDSN())
	pools := newPools(t, s)
	r := &rig{t: t, pools: pools, conn: access.Connection{Name: "db", Type: access.TypePostgres, Operator: true, Folder: t.TempDir(),
		SQL: &access.SQLConnection{DSN: access.Value{Secret: "dsn"}}}}
	a := r.attempt()
	pid := a.rows("SELECT pg_backend_pid()")
	b := r.attempt()
	b.rows("SELECT 1")
	b.Close()
	if n := pools.Count(); n != 1 {
		t.Errorf("%d pools", n)
	}
	s.set("dsn", pg.PostgresDSN()+"?application_name=rotated")
	c := r.attempt()
	c.want(`[["rotated"]]`, "SELECT current_setting('application_name')")
	a.want(pid, "SELECT pg_backend_pid()")
	if n := pools.Count(); n != 2 {
		t.Errorf("%d pools", n)
	}
	a.Close()
	if n := pools.Count(); n != 1 {
		t.Errorf("%d pools", n)
	}
	for c.rows("SELECT count(*) FROM pg_stat_activity WHERE pid = "+strings.Trim(pid, "[]")) != "[[0]]" { // the server ends it by itself
	}
}

// BenchmarkServers is the cost of a query beside the same one by database/sql.
func BenchmarkServers(b *testing.B) {
	pg, maria := postgresServer.get(b), mariaServer.get(b)
	for _, c := range []struct {
		name, driver, dsn, query string
		rig                      *rig
	}{
		{"postgres", "pgx", pg.PostgresDSN() + "?sslmode=disable", "SELECT n, 'text of row', n * 1.5::float8 FROM generate_series(1, %d) AS s(n)", postgresRig(b, pg)},
		{"mariadb", "mysql", maria.MariaDSN(), "SELECT seq, 'text of row', seq * 1.5 FROM seq_1_to_1000 WHERE seq <= %d", mariaRig(b, maria)},
	} {
		db, err := sql.Open(c.driver, c.dsn)
		if err != nil {
			b.Fatal(err)
		}
		b.Run(c.name, func(b *testing.B) { benchmark(b, db, c.rig, c.query) })
		if err := db.Close(); err != nil {
			b.Fatal(err)
		}
	}
}

func (s *secrets) set(name, value string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.values == nil {
		s.values = map[string]string{}
	}
	s.values[name] = value
}
