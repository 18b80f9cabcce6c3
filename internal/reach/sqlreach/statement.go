package sqlreach

import (
	"slices"
	"strings"

	"github.com/flowhost/flowhost/run/access"
)

// statement is what the host must know about a statement before it passes it on.
type statement struct {
	keyword string // the first, or of WITH the one that follows the table expressions; upper case
	writes  bool   // it may change rows
	changes bool   // it may change the state of the session
}

// verdict is what happens to statements with a keyword.
type verdict struct {
	mode    access.Mode // the access that the statement needs
	only    string      // the type of database that has it; empty: all
	in      bool        // allowed within a transaction only
	changes bool        // may change the state of the session
}

// verdicts has the keywords that are allowed.
var verdicts = map[string]verdict{
	"SELECT":   {mode: access.ReadOnly},
	"VALUES":   {mode: access.ReadOnly},
	"TABLE":    {mode: access.ReadOnly},
	"EXPLAIN":  {mode: access.ReadOnly},
	"SHOW":     {mode: access.ReadOnly},
	"DESCRIBE": {mode: access.ReadOnly, only: access.TypeMySQL},
	"DESC":     {mode: access.ReadOnly, only: access.TypeMySQL},

	"INSERT":  {mode: access.ReadWrite},
	"UPDATE":  {mode: access.ReadWrite},
	"DELETE":  {mode: access.ReadWrite},
	"MERGE":   {mode: access.ReadWrite},
	"REPLACE": {mode: access.ReadWrite},

	"CREATE":   {mode: access.ReadWrite, changes: true}, // also temporary tables
	"ALTER":    {mode: access.ReadWrite, changes: true},
	"DROP":     {mode: access.ReadWrite, changes: true},
	"TRUNCATE": {mode: access.ReadWrite},
	"COMMENT":  {mode: access.ReadWrite},
	"GRANT":    {mode: access.ReadWrite},
	"REVOKE":   {mode: access.ReadWrite},
	"ANALYZE":  {mode: access.ReadWrite},
	"REINDEX":  {mode: access.ReadWrite},
	"OPTIMIZE": {mode: access.ReadWrite, only: access.TypeMySQL},
	"RENAME":   {mode: access.ReadWrite, only: access.TypeMySQL},
	"REFRESH":  {mode: access.ReadWrite, only: access.TypePostgres},
	"CLUSTER":  {mode: access.ReadWrite, only: access.TypePostgres},
	"LOCK":     {mode: access.ReadWrite, only: access.TypePostgres, in: true},
	"CALL":     {mode: access.ReadWrite, changes: true},
	"DO":       {mode: access.ReadWrite, changes: true},

	"SAVEPOINT": {mode: access.ReadOnly, in: true},
	"RELEASE":   {mode: access.ReadOnly, in: true},
}

// instead has the advice for keywords that are refused.
var instead = map[string]string{
	"BEGIN": "start a transaction with sql.begin", "START": "start a transaction with sql.begin",
	"COMMIT": "end the transaction with sql.commit", "END": "end the transaction with sql.commit",
	"ROLLBACK": "end the transaction with sql.rollback", "ABORT": "end the transaction with sql.rollback",
	"SET":   "the isolation of a transaction is an option of sql.begin, and other settings belong into the DSN or to the database's user",
	"RESET": "the settings of a session are the host's", "DISCARD": "the settings of a session are the host's",
	"USE":    "name the database in the DSN, or write it before the table",
	"ATTACH": "declare a connection of its own for the other file", "DETACH": "declare a connection of its own for the other file",
	"PRAGMA":  "read the schema with SELECT from pragma_table_info and the like",
	"COPY":    "use INSERT and SELECT, which carry their rows in the operation",
	"LOAD":    "use INSERT, which carries its rows in the operation",
	"VACUUM":  "the operator of the database runs it",
	"PREPARE": "statements are prepared by the host", "EXECUTE": "pass the statement and its arguments", "DEALLOCATE": "statements are prepared by the host",
	"LISTEN": "trigger the flow by a message", "UNLISTEN": "trigger the flow by a message", "NOTIFY": "publish a message",
	"DECLARE": "pages of sql.query are the cursor", "FETCH": "pages of sql.query are the cursor", "HANDLER": "pages of sql.query are the cursor",
	"LOCK": "use SELECT … FOR UPDATE in a transaction",
	"XA":   "a transaction of an attempt is not distributed",
}

// leaves has the second words after which CREATE and ALTER leave the database.
var leaves = []string{"SYSTEM", "SUBSCRIPTION", "PUBLICATION", "SERVER", "FOREIGN", "EXTENSION", "TABLESPACE", "INSTANCE"}

// judge decides whether a connection may run a statement. within says that a transaction
// of the guest is open.
func judge(kind string, mode access.Mode, within bool, text string) (statement, *access.Fault) {
	if kind == access.TypeMySQL {
		if f := refuseMySQL(text); f != nil {
			return statement{}, f
		}
	}
	words, several := scan(kind, text)
	if len(words) == 0 {
		return statement{}, invalid("the statement is empty: pass one")
	}
	keyword := words[0]
	if keyword == "WITH" {
		keyword = mainOf(words)
	}
	second := ""
	if len(words) > 1 {
		second = words[1]
	}
	if keyword == "ROLLBACK" && second == "TO" && within {
		return statement{keyword: keyword}, nil
	}
	v, ok := verdicts[keyword]
	switch {
	case !ok || v.only != "" && v.only != kind:
		return statement{}, refusedKeyword(keyword)
	case several:
		return statement{}, denied("one statement", "the operation has several statements: pass each in an operation of its own, between sql.begin and sql.commit if they belong together")
	case (keyword == "CREATE" || keyword == "ALTER") && slices.Contains(leaves, second):
		return statement{}, denied("statement", "%s %s leaves the database: it is refused, the operator does that", keyword, second)
	case v.in && !within:
		return statement{}, denied("statement", "%s outside of a transaction is refused: start one with sql.begin", keyword)
	case !mode.Includes(v.mode):
		return statement{}, readOnly(keyword)
	}
	if kind == access.TypeMySQL {
		v.changes = v.changes || touchesSession(text)
	}
	return statement{keyword: keyword, writes: v.mode == access.ReadWrite || words[0] == "WITH", changes: v.changes}, nil
}

func refusedKeyword(keyword string) *access.Fault {
	advice := instead[keyword]
	if advice == "" {
		advice = "pass a query, or a statement that changes rows or the schema"
	}
	return denied("statement", "a statement that begins with %s is refused: %s", shortWord(keyword), advice)
}

func shortWord(word string) string {
	const most = 32
	if word == "" {
		return "no keyword"
	}
	return word[:min(len(word), most)]
}

// mainOf is the keyword of the statement that begins with WITH: the first one outside of
// parentheses that a statement can begin with. scan leaves out what is in parentheses.
func mainOf(words []string) string {
	for i, w := range words[1:] {
		// A table expression may have the name of a keyword only when AS follows it.
		if slices.Contains([]string{"SELECT", "VALUES", "TABLE", "INSERT", "UPDATE", "DELETE", "MERGE", "REPLACE"}, w) &&
			(i+2 >= len(words) || words[i+2] != "AS") {
			return w
		}
	}
	return "WITH"
}

// refuseMySQL refuses words that reach files of the server, and comments that the server
// executes. They are searched for in strings, too: how long a string is depends on the
// session's mode, and a text can be an argument.
func refuseMySQL(text string) *access.Fault {
	upper := strings.ToUpper(text)
	for _, word := range []string{"OUTFILE", "DUMPFILE", "LOAD_FILE", "/*!", "/*M!"} {
		if strings.Contains(upper, word) {
			return denied("statement", "a statement that contains %s is refused: it reads or writes files of the server, or hides keywords; pass texts as arguments", word)
		}
	}
	return nil
}

// touchesSession reports whether a statement mentions what outlives it in MySQL: variables
// and locks.
func touchesSession(text string) bool {
	upper := strings.ToUpper(text)
	return strings.Contains(upper, "@") || strings.Contains(upper, "_LOCK") || strings.Contains(upper, "LAST_INSERT_ID")
}
