package sqlreach_test

import (
	"context"
	"crypto/sha256"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/flowhost/flowhost/internal/reach/sqlreach"
	"github.com/flowhost/flowhost/run/access"
)

func TestScan(t *testing.T) {
	t.Parallel()
	const pg, my, lite = access.TypePostgres, access.TypeMySQL, access.TypeSQLite
	for _, c := range []struct {
		kind, text, words string
		several           bool
	}{
		{pg, "select 1", "SELECT 1", false},
		{pg, " \t\n-- x ; y\n/* a /* b */ ; */ Select a, b from t", "SELECT A B FROM T", false},
		{my, "/* a /* b */ select", "SELECT", false},
		{lite, "/* a /* b */ select", "SELECT", false},
		{my, "# x\nselect 1--2", "SELECT 1 2", false},
		{my, "-- x\nselect", "SELECT", false},
		{my, "--x", "- X", false},
		{lite, "--x", "", false},
		{pg, "select 1;", "SELECT 1", false},
		{pg, "select 1; -- x", "SELECT 1", false},
		{pg, "select 1;;", "SELECT 1", true},
		{pg, "select ';' , \";\" , $$;$$, $a$ ; $b$ ; $a$", "SELECT", false},
		{pg, "select $1; x", "SELECT 1", true},
		{pg, "select e'\\'; x'", "SELECT E", false},
		{pg, "select '\\'; x'", "SELECT", true},
		{my, "select '\\'; x'", "SELECT", false},
		{lite, "select '\\'; x'", "SELECT", true},
		{lite, "select [;], `;`", "SELECT", false},
		{pg, "select a[1]; x", "SELECT A 1", true},
		{pg, "((select 1) union select 2)", "SELECT 1 UNION SELECT 2", false},
		{pg, "with a as (select 1), b(x) as (delete) select", "WITH A AS B AS SELECT", false},
		{pg, `"select" 1`, `" 1`, false},
		{pg, "select 'unclosed ; x", "SELECT", false},
		{pg, "/* unclosed ; x", "", false},
		{pg, "", "", false},
		{lite, "create trigger t begin select 1; select 2; end; drop", "CREATE TRIGGER T BEGIN SELECT 1 SELECT 2 END", true},
		{lite, "create trigger t begin select case when 1 then 2 end; select 2; end;", "CREATE TRIGGER T BEGIN SELECT CASE WHEN 1 THEN 2 END SELECT 2 END", false},
	} {
		words, several := sqlreach.Scan(c.kind, c.text)
		if got := strings.Join(words, " "); got != c.words && !several || several != c.several {
			t.Errorf("%s %q: %q %v", c.kind, c.text, got, several)
		}
	}
}

func TestWith(t *testing.T) {
	t.Parallel()
	for text, denied := range map[string]bool{
		"WITH a AS (SELECT 1) SELECT * FROM a":                                          false,
		"WITH RECURSIVE a(n) AS (SELECT 1), b AS NOT MATERIALIZED (VALUES (1)) TABLE b": false,
		"WITH a AS (SELECT 1) (SELECT 1)":                                               true, // no keyword that could be judged
		"WITH a AS (SELECT 1) INSERT INTO b SELECT 1":                                   true,
		"WITH a AS (SELECT 1) UPDATE b SET x = (SELECT 1)":                              true,
		"WITH a AS (SELECT 1) DELETE FROM b":                                            true,
		"WITH values AS (SELECT 1) DELETE FROM b":                                       true,
		"WITH select(x) AS (SELECT 1) DELETE FROM b":                                    true,
		"WITH a AS (SELECT 1) MERGE INTO b":                                             true,
	} {
		_, f := sqlreach.Judge(access.TypePostgres, access.ReadOnly, false, text)
		if (f != nil) != denied {
			t.Errorf("%s: %+v", text, f)
		}
	}
}

// TestAdvice checks that refusals say what to use.
func TestAdvice(t *testing.T) {
	t.Parallel()
	for text, advice := range map[string]string{
		"BEGIN": "sql.begin", "COMMIT": "sql.commit", "ROLLBACK": "sql.rollback", "SET x = 1": "sql.begin", "COPY x TO PROGRAM 'y'": "INSERT",
		"ATTACH 'x' AS y": "connection", "PRAGMA x": "pragma_table_info", "SELECT 1; SELECT 2": "operation of its own", "INSERT INTO x VALUES (1)": `"ro"`,
	} {
		_, f := sqlreach.Judge(access.TypeSQLite, access.ReadOnly, false, text)
		if f == nil || f.Code != access.CodeDenied || f.Rule == "" || !strings.Contains(f.Message, advice) {
			t.Errorf("%s: %+v", text, f)
		}
	}
	if _, f := sqlreach.Judge(access.TypeSQLite, access.ReadOnly, false, strings.Repeat("x", 1<<20)); f == nil || len(f.Message) > 200 {
		t.Error("a long keyword is repeated")
	}
}

// FuzzSeveral appends a second statement to any text: it is refused, or SQLite takes it
// for a part of the first. No text knows the name of the table that the second one drops.
func FuzzSeveral(f *testing.F) {
	for _, seed := range []string{
		"SELECT 1", "SELECT '", "SELECT \"", "SELECT [", "SELECT `", "SELECT 1 --", "SELECT 1 /*", "SELECT 1 /* /* */ */", "SELECT '\\'", "SELECT $$", "SELECT $a$", "SELECT 1;",
		"CREATE TRIGGER t AFTER INSERT ON x BEGIN SELECT 1", "CREATE TRIGGER t AFTER INSERT ON x BEGIN SELECT 1; END", "CREATE TEMP TRIGGER t", "CREATE TABLE trigger (x)",
		"EXPLAIN SELECT 1", "WITH x AS (SELECT 1) SELECT 1", "(SELECT 1)", "#", "\x00", "SELECT 1\x00", "\xef\xbb\xbfSELECT 1", "SELECT 1 -- \r", "SELECT\x0b1", "SELECT x'", "SELECT 1 -- \x00\n",
		"CREATE TRIGGER t AFTER INSERT ON x BEGIN SELECT CASE 1 WHEN 1 THEN 1 END", "ANALYZE", "VALUES (1)",
	} {
		f.Add(seed)
	}
	r := sqliteRig(f)
	f.Fuzz(func(t *testing.T, text string) {
		canary := fmt.Sprintf("canary_%x", sha256.Sum256([]byte(text)))
		one := *r
		one.t = t
		a := one.attempt()
		a.exec("CREATE TABLE " + canary + " (x)")
		ctx, cancel := context.WithTimeout(t.Context(), time.Second) // of a statement that does not end
		defer cancel()
		a.do(ctx, access.KindSQLExec, object{"sql": text + "; DROP TABLE " + canary})
		a.Close()
		b := one.attempt()
		b.rows("SELECT * FROM " + canary)
		b.exec("DROP TABLE " + canary)
		b.Close()
	})
}

// FuzzScan looks for texts on which the scanner fails or does not end.
func FuzzScan(f *testing.F) {
	for _, seed := range []string{"SELECT 1; x", "E'\\", "'\\", "$a$", "$", "/*/*", "--", "#", "[", "WITH x"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		for _, kind := range []string{access.TypePostgres, access.TypeMySQL, access.TypeSQLite} {
			words, _ := sqlreach.Scan(kind, text)
			if slices.Contains(words, "") {
				t.Errorf("%q: %q", text, words)
			}
			if _, f := sqlreach.Judge(kind, access.ReadOnly, false, text); f == nil && len(words) == 0 {
				t.Errorf("%q is allowed", text)
			}
		}
	})
}
