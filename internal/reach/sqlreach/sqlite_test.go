package sqlreach_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/flowhost/flowhost/run/access"
)

var sqliteDialect = dialect{
	series: "WITH RECURSIVE s(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM s WHERE n < %[1]d) SELECT n FROM s WHERE n <= %[1]d",
	sleep:  "WITH RECURSIVE s(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM s) SELECT count(*) FROM s",
	arg:    func(int) string { return "?" },
	shared: true,
}

func TestSQLite(t *testing.T) {
	t.Parallel()
	conformance(t, sqliteRig, sqliteDialect)
}

func TestSQLiteMillions(t *testing.T) {
	testMillions(t, sqliteRig(t), sqliteDialect, 300_000)
}

func TestSQLiteValues(t *testing.T) {
	t.Parallel()
	a := sqliteRig(t).attempt()
	a.exec("CREATE TABLE v (i INTEGER, r REAL, s TEXT, b BLOB, t TIMESTAMP, d DATE, n NUMERIC)")
	a.exec("INSERT INTO v VALUES (?, ?, ?, ?, ?, ?, ?)", 1, 2.5, "text", object{"bytes": "AP8="},
		object{"time": "2026-01-02T05:04:05.123456789+02:00"}, "2026-01-02", object{"decimal": "12.50"})
	a.exec("INSERT INTO v VALUES (?, ?, ?, ?, ?, ?, ?)", object{"int": "9223372036854775807"}, object{"float": "Infinity"}, "\x01\"\\é", nil, nil, nil, 9007199254740993)
	answer := a.must(access.KindSQLQuery, object{"sql": "SELECT * FROM v"})
	want := `[[1,2.5,"text",{"bytes":"AP8="},"2026-01-02T03:04:05.123456789Z","2026-01-02",12.5],` +
		`[{"int":"9223372036854775807"},{"float":"Infinity"},"\u0001\"\\é",null,null,null,{"int":"9007199254740993"}]]`
	if string(answer.Body) != want {
		t.Errorf("\n got %s\nwant %s", answer.Body, want)
	}
	h := headOf(t, answer)
	if len(h.Columns) != 7 || h.Columns[4].Name != "t" || h.Columns[4].Type != "TIMESTAMP" || h.Columns[0].Nullable == nil {
		t.Errorf("%+v", h.Columns)
	}
	a.want(`[[{"bytes":"/w=="}]]`, "SELECT CAST(x'ff' AS TEXT)")
}

func TestSQLiteExecHead(t *testing.T) {
	t.Parallel()
	a := sqliteRig(t).attempt()
	table(a)
	if got := string(a.exec("INSERT INTO things (name) VALUES ('a'), ('b')").Head); got != `{"rows_affected":2,"last_insert_id":2}` {
		t.Error(got)
	}
}

// TestSQLiteCorpus has what gets past keywords, and is stopped by the authorizer or the
// file's mode.
func TestSQLiteCorpus(t *testing.T) {
	t.Parallel()
	r := sqliteRig(t)
	r.attempt().exec("CREATE TABLE things (id INTEGER)")
	for _, c := range []struct {
		corpusCase
		mode access.Mode
	}{
		{corpusCase{"load_extension", "SELECT load_extension('x')", access.CodeDenied}, access.ReadWrite},
		{corpusCase{"a pragma as a table", "SELECT * FROM pragma_journal_mode", access.CodeDenied}, access.ReadWrite},
		{corpusCase{"explain attach", "EXPLAIN ATTACH 'x' AS y", access.CodeDenied}, access.ReadWrite},
		{corpusCase{"a pragma that sets", "SELECT * FROM pragma_query_only(0)", access.CodeRefused}, access.ReadOnly},
		{corpusCase{"explain insert", "EXPLAIN INSERT INTO things VALUES (1)", access.CodeDenied}, access.ReadOnly},
		{corpusCase{"a temporary table", "CREATE TEMP TABLE x (y)", access.CodeDenied}, access.ReadOnly},
		{corpusCase{"a temporary trigger after a trigger", "CREATE TEMP TRIGGER x AFTER INSERT ON things BEGIN SELECT 1; END; DROP TABLE things", access.CodeDenied}, access.ReadWrite},
		{corpusCase{"a table called trigger", "CREATE TABLE trigger (x); DROP TABLE things", access.CodeDenied}, access.ReadWrite},
		{corpusCase{"the schema", "UPDATE sqlite_master SET sql = 'x'", access.CodeRefused}, access.ReadWrite},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			a := r.with(c.mode).attempt()
			a.t = t
			a.fails(c.code, access.KindSQLQuery, object{"sql": c.sql})
			a.want("[]", "SELECT * FROM things")
		})
	}
	t.Cleanup(func() {
		for _, name := range []string{"x", "y", "copy.db", "other.db"} {
			if _, err := os.Stat(filepath.Join(r.conn.Folder, name)); err == nil {
				t.Errorf("there is a file %s", name)
			}
		}
	})
}

func TestSQLiteTriggers(t *testing.T) {
	t.Parallel()
	a := sqliteRig(t).attempt()
	table(a)
	a.exec("CREATE TRIGGER t AFTER INSERT ON things WHEN new.id < 10 BEGIN UPDATE things SET name = CASE WHEN 1 THEN 'x' END; INSERT INTO things (id, name) VALUES (10, 'y'); END;")
	a.exec("INSERT INTO things VALUES (1, 'a')")
	a.want(`[[1,"x"],[10,"y"]]`, "SELECT * FROM things")
	a.rows("SELECT * FROM pragma_table_info('things')")
}

func TestSQLitePaths(t *testing.T) {
	t.Parallel()
	outside := t.TempDir()
	dir := t.TempDir()
	for _, err := range []error{
		os.Mkdir(filepath.Join(dir, "sub"), 0o755), os.Symlink(outside, filepath.Join(dir, "link")), os.Symlink("sub", filepath.Join(dir, "inner")),
		os.Symlink(filepath.Join(outside, "x.db"), filepath.Join(dir, "file.db")), os.Symlink("sub/x.db", filepath.Join(dir, "wal.db-wal")),
		os.WriteFile(filepath.Join(dir, "plain"), nil, 0o644), os.Mkdir(filepath.Join(dir, "directory.db"), 0o755),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	pools := newPools(t, nil)
	for path, code := range map[string]string{
		"../x.db": access.CodeDenied, filepath.Join(outside, "x.db"): access.CodeDenied, "sub/../../x.db": access.CodeDenied, "": access.CodeDenied, ".": access.CodeDenied,
		"link/x.db": access.CodeDenied, "inner/x.db": access.CodeDenied, "file.db": access.CodeDenied, "wal.db": access.CodeDenied,
		"plain/x.db": access.CodeDenied, "directory.db": access.CodeDenied, "missing/x.db": access.CodeInvalid,
		"sub/x.db": "", "sub/a?mode=rw&x#y%41.db": "", "file::memory:": "",
	} {
		c := &access.Connection{Name: "db", Type: access.TypeSQLite, Folder: dir, SQL: &access.SQLConnection{Path: path, Access: access.ReadWrite}}
		err := pools.Test(t.Context(), "flow", c)
		if code == "" {
			if err != nil {
				t.Errorf("%q: %v", path, err)
			} else if _, err := os.Stat(filepath.Join(dir, path)); err != nil {
				t.Error(err)
			}
			continue
		}
		if err == nil {
			t.Errorf("%q: no error", path)
			continue
		}
		if f := faultOf(t, err); f.Code != code {
			t.Errorf("%q: %+v", path, f)
		}
		hidden(t, err.Error(), dir, outside)
	}
	if entries, err := os.ReadDir(outside); err != nil || len(entries) != 0 {
		t.Errorf("outside: %v %v", entries, err)
	}
}

func TestSQLiteReadOnlyCreatesNothing(t *testing.T) {
	t.Parallel()
	r := sqliteRig(t).with(access.ReadOnly)
	r.attempt().fails(access.CodeNotFound, access.KindSQLQuery, object{"sql": "SELECT 1"})
	if entries, err := os.ReadDir(r.conn.Folder); err != nil || len(entries) != 0 {
		t.Errorf("%v %v", entries, err)
	}
	if err := os.WriteFile(filepath.Join(r.conn.Folder, "data.db"), []byte(strings.Repeat("no database", 1000)), 0o644); err != nil {
		t.Fatal(err)
	}
	r.attempt().fails(access.CodeRefused, access.KindSQLQuery, object{"sql": "SELECT * FROM sqlite_master"})
}

// TestSQLiteLocked holds the lock for writing until the other attempt has no time left.
func TestSQLiteLocked(t *testing.T) {
	t.Parallel()
	r := sqliteRig(t)
	a, b := r.attempt(), r.attempt()
	table(a)
	a.must(access.KindSQLBegin, nil)
	answer := b.do(soon(t), access.KindSQLExec, object{"sql": "INSERT INTO things VALUES (1, 'b')"})
	if answer.Fault == nil || !answer.Fault.Retryable || answer.Fault.Code != access.CodeTimeout && answer.Fault.Code != access.CodeConflict {
		t.Errorf("%+v", answer.Fault)
	}
	a.must(access.KindSQLCommit, nil)
	b.exec("INSERT INTO things VALUES (1, 'b')")
}

// TestSessionsAreApart leaves state behind.
func TestSessionsAreApart(t *testing.T) {
	t.Parallel()
	r := sqliteRig(t)
	a := r.attempt()
	a.exec("CREATE TEMP TABLE mine (secret TEXT)")
	a.exec("INSERT INTO mine VALUES ('of a')")
	a.want(`[["of a"]]`, "SELECT * FROM mine")
	a.Close()
	r.attempt().fails(access.CodeRefused, access.KindSQLQuery, object{"sql": "SELECT * FROM mine"})
}

// A statement that needs much memory fails, and those after it have it again. Others that run
// meanwhile could fail, too, so this test runs alone.
func TestSQLiteMemory(t *testing.T) {
	a := sqliteRig(t).attempt()
	a.fails(access.CodeTooLarge, access.KindSQLQuery, object{"sql": `WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x+1 FROM c LIMIT 10000000)
		SELECT count(*) FROM (SELECT DISTINCT hex(randomblob(10000)) FROM c)`})
	a.want("[[1]]", "SELECT 1")
}
