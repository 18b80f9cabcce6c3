//go:build databases && linux

package e2e

import (
	"database/sql"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	_ "github.com/jackc/pgx/v5/stdlib" // the driver of observers

	"github.com/flowhost/flowhost/internal/testkit/dbserver"
)

// observed is a PostgreSQL server with a table of rows, and the settings of a connection "db"
// to it.
type observed struct {
	*dbserver.Server
	t        *testing.T
	watch    *sql.DB
	settings string
}

func startPostgres(t *testing.T) *observed {
	t.Helper()
	s, err := dbserver.StartPostgres()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	secret := filepath.Join(t.TempDir(), "dsn")
	if err := os.WriteFile(secret, []byte(s.PostgresDSN()), 0o600); err != nil {
		t.Fatal(err)
	}
	watch, err := sql.Open("pgx", s.PostgresDSN()+"?sslmode=disable&application_name=observer")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { watch.Close() })
	o := &observed{s, t, watch, fmt.Sprintf("secret \"dsn\" {\n file = %q\n}\n"+`connection "db" {
  type     = "postgres"
  dsn      = secret.dsn
  access   = "rw"
  max_open = 3
}
`, secret)}
	o.ask("CREATE TABLE rows (attempt TEXT)")
	return o
}

// kill ends the server as a crash does.
func (o *observed) kill() {
	o.Kill()
	o.watch.SetMaxIdleConns(0) // which closes those that break with it
	o.watch.SetMaxIdleConns(1)
}

// ask gives the first column of a query.
func (o *observed) ask(query string) []string {
	o.t.Helper()
	rows, err := o.watch.QueryContext(o.t.Context(), query)
	if err != nil {
		o.t.Fatal(err)
	}
	defer rows.Close()
	var found []string
	for rows.Next() {
		var one string
		if err := rows.Scan(&one); err != nil {
			o.t.Fatal(err)
		}
		found = append(found, one)
	}
	if err := rows.Err(); err != nil {
		o.t.Fatal(err)
	}
	return found
}

// until waits for what the server says about the sessions of the host.
func (o *observed) until(what string, sessions ...string) {
	o.t.Helper()
	var got []string
	for end := time.Now().Add(patience); time.Now().Before(end); {
		got = o.ask("SELECT coalesce(state, 'starting') FROM pg_stat_activity WHERE application_name = 'flowhost' ORDER BY 1")
		if slices.Equal(got, sessions) {
			return
		}
	}
	o.t.Fatalf("%s: the sessions are %q, want %q", what, got, sessions)
}

// The server of a database is killed in the middle of a statement within a transaction: the
// attempt fails with unreachable, nothing of it stays, and the next one succeeds once there is
// a server again.
func TestDatabaseKilled(t *testing.T) {
	t.Parallel()
	db := startPostgres(t)
	steps := []string{"begin", "INSERT INTO rows VALUES ('ATTEMPT')", "once SELECT pg_sleep(600)", "commit", "read SELECT count(*)::text FROM rows"}
	flows := "flow \"again\" {\n" + scriptTask("store", "db", patiently, steps...) + "}\n" +
		"flow \"once\" {\n" + scriptTask("store", "db", "", steps...) + "}\n"
	h := serve(t, site(t, flows, db.settings), "--nats-listen", "127.0.0.1:0")
	c := h.client()
	follow := c.subscribe("fh.v1.run.again.>")
	again, once := c.submit("fh.v1.api.run.again", ""), c.submit("fh.v1.api.run.once", "")
	db.until("both attempts sleep", "active", "active")
	db.kill()
	if failed := ended(c, once).task(t, "store"); failed.Outcome != "failed" || failed.Attempts != 1 || failed.Error == nil || failed.Error.Code != "unreachable" {
		t.Errorf("%+v %+v", failed, failed.Error)
	}
	follow.attempt("store", 3) // meets no server
	if err := db.Start(); err != nil {
		t.Fatal(err)
	}
	all := follow.finished(again)
	r := ended(c, again)
	store := r.task(t, "store")
	if r.State != "succeeded" || store.Attempts < 3 || string(store.Output) != `["1"]` {
		t.Errorf("%s after %d attempts: %s %+v", r.State, store.Attempts, store.Output, store.Error)
	}
	attempts := append([]string{"failed unreachable", "failed unreachable"}, outcomes(all, "store")...)
	for _, outcome := range attempts[:len(attempts)-1] {
		if outcome != "failed unreachable" {
			t.Errorf("attempts %q", attempts)
			break
		}
	}
	if got, want := db.ask("SELECT attempt FROM rows"), fmt.Sprint(store.Attempts); !slices.Equal(got, []string{want}) {
		t.Errorf("the rows are of attempts %q, want %s", got, want)
	}
	db.until("the connection is unused", "idle")
	h.stop()
	db.until("the host has ended")
}

// A host is killed while one task has a transaction open and another one's statement runs: the
// server ends both, at the latest at the deadline of the attempt, and the next host repeats
// the attempts.
func TestHostKilledWithDatabase(t *testing.T) {
	t.Parallel()
	db, api := startPostgres(t), startHolding(t)
	flows := "flow \"store\" {\n" +
		scriptTask("open", "db", "", "begin", "INSERT INTO rows VALUES ('open ATTEMPT')", "once GET /hold", "commit") +
		scriptTask("runs", "db", `timeout = "20s"`, "begin", "INSERT INTO rows VALUES ('runs ATTEMPT')", "once SELECT pg_sleep(600)", "commit") + "}\n"
	h := serve(t, site(t, flows, db.settings+apiOf(api.Server, "")), "--nats-listen", "127.0.0.1:0")
	id := h.client().submit("fh.v1.api.run.store", "")
	within(t, "the request of the task", api.asked)
	db.until("both attempts are under way", "active", "idle in transaction")
	h.kill()
	db.until("the server has ended the sessions")
	if rows := db.ask("SELECT attempt FROM rows"); len(rows) > 0 {
		t.Errorf("rows %q of attempts that ended with the host", rows)
	}
	h.restart()
	r := ended(h.client(), id)
	if r.State != "succeeded" || r.task(t, "open").Attempts != 2 || r.task(t, "runs").Attempts != 2 {
		t.Errorf("%s: %+v", r.State, r.Tasks)
	}
	if got := db.ask("SELECT attempt FROM rows ORDER BY attempt"); !slices.Equal(got, []string{"open 2", "runs 2"}) {
		t.Errorf("rows %q", got)
	}
}

// What a task leaves open or does not end is bounded: a transaction that it leaves, a
// statement that sleeps and a result of ten million rows that it reads past its deadline.
func TestDatabaseBounds(t *testing.T) {
	t.Parallel()
	db := startPostgres(t)
	flows := "flow \"bounds\" {\n" +
		scriptTask("left", "db", `on_error = "continue"`, "begin", "INSERT INTO rows VALUES ('left')") +
		scriptTask("sleeps", "db", "on_error = \"continue\"\n timeout = \"2s\"", "begin", "INSERT INTO rows VALUES ('sleeps')", "SELECT pg_sleep(600)", "commit") +
		scriptTask("reads", "db", "on_error = \"continue\"\n timeout = \"2s\"", "begin", "INSERT INTO rows VALUES ('reads')",
			"read SELECT 'row ' || n FROM generate_series(1, 10000000) AS s(n)", "commit") + "}\n"
	h := serve(t, site(t, flows, db.settings), "--nats-listen", "127.0.0.1:0")
	r := h.client().result("fh.v1.api.run.bounds", "")
	for task, want := range map[string]string{"left": "succeeded", "sleeps": "timed_out", "reads": "timed_out"} {
		if got := r.task(t, task); got.Outcome != want {
			t.Errorf("%s: %s %+v, want %s", task, got.Outcome, got.Error, want)
		}
	}
	for end := time.Now().Add(patience); ; {
		busy := db.ask("SELECT coalesce(state, 'starting') FROM pg_stat_activity WHERE application_name = 'flowhost' AND state IS DISTINCT FROM 'idle'")
		if len(busy) == 0 {
			break
		}
		if time.Now().After(end) {
			t.Fatalf("sessions of attempts that have ended are %q", busy)
		}
	}
	if rows := db.ask("SELECT attempt FROM rows"); len(rows) > 0 {
		t.Errorf("rows %q of transactions that were not committed", rows)
	}
	h.stop()
	db.until("the host has ended")
}

// ended is the record of a run at its end.
func ended(c *client, id string) *record {
	c.t.Helper()
	c.follow(`{"run":"` + id + `"}`).finished(id)
	r := verb[record](c, "get", `{"run":"`+id+`"}`, nil)
	return &r
}
