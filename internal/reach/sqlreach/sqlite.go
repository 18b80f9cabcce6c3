package sqlreach

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"

	"github.com/flowhost/flowhost/run/access"
)

// maxLength bounds a text, a blob and a row of SQLite, which are held as a whole.
const maxLength = 8 << 20

// busyMost is how long a statement waits for a lock of another connection at most.
const busyMost = time.Minute

func sqliteEngine(c *access.Connection) (*engine, *access.Fault) {
	if !boundMemory() {
		return nil, &access.Fault{Code: access.CodeInternal, Message: "SQLite was used before its memory could be bounded"}
	}
	write := c.SQL.Access == access.ReadWrite
	path := filepath.Join(c.Folder, filepath.FromSlash(c.SQL.Path))
	uri := url.URL{Scheme: "file", Path: filepath.ToSlash(path)}
	statements := []string{"PRAGMA trusted_schema = OFF", "PRAGMA cell_size_check = ON", "PRAGMA temp_store = MEMORY", "PRAGMA busy_timeout = 5000"}
	if write {
		uri.RawQuery = "mode=rwc&_defensive=1"
		statements = append(statements, "PRAGMA journal_mode = WAL", "PRAGMA foreign_keys = ON")
	} else {
		uri.RawQuery = "mode=ro&immutable=0&_defensive=1"
		statements = append(statements, "PRAGMA query_only = ON")
	}
	connector, err := sqlite.NewConnector(uri.String())
	if err != nil {
		return nil, invalid("the path of the database cannot be used")
	}
	return &engine{
		connector: setUp{Connector: connector, statements: statements, check: func() error { return checkPath(c) }, then: guard(write)},
		ready:     readySQLite,
		begin:     beginSQLite(write), exec: execResult, fault: faultSQLite, form: formSQLite,
		timeArg: func(t time.Time) any { return t.UTC().Format("2006-01-02 15:04:05.999999999-07:00") },
		shared:  true,
	}, nil
}

// checkPath looks at the way to the database and at the files beside it without following
// links. A guest cannot make links, so what is found stays.
func checkPath(c *access.Connection) error {
	name := filepath.FromSlash(c.SQL.Path)
	if !filepath.IsAbs(c.Folder) || !filepath.IsLocal(name) || filepath.Clean(name) == "." {
		return denied("path", "the path of the database leads out of the directory of the file that declares the connection: write one below it")
	}
	at := c.Folder
	parts := strings.Split(filepath.Clean(name), string(filepath.Separator))
	for _, part := range parts[:len(parts)-1] {
		at = filepath.Join(at, part)
		info, err := os.Lstat(at)
		switch {
		case err != nil:
			return invalid("a directory on the path of the database is missing: make it")
		case !info.IsDir():
			return denied("path", "the path of the database contains a link, or a file where a directory should be: put the directory itself there")
		}
	}
	file := filepath.Join(at, parts[len(parts)-1])
	for _, suffix := range []string{"", "-wal", "-shm", "-journal"} {
		info, err := os.Lstat(file + suffix)
		switch {
		case errors.Is(err, fs.ErrNotExist) && (suffix != "" || c.SQL.Access == access.ReadWrite):
		case errors.Is(err, fs.ErrNotExist):
			return &access.Fault{Code: access.CodeNotFound, Message: `the file of the database is missing: a connection with access = "rw" creates it`}
		case err != nil:
			return unreachable("the file of the database cannot be looked at")
		case !info.Mode().IsRegular():
			return denied("path", "the file of the database, or one beside it, is a link or a special file: put the file itself there")
		}
	}
	return nil
}

// guard sets the authorizer of a connection, which SQLite asks about each action of a
// statement, whatever its text.
func guard(write bool) func(driver.Conn) error {
	return func(conn driver.Conn) error {
		registerer, ok := conn.(sqlite.AuthorizerRegisterer)
		if !ok {
			return fmt.Errorf("connections of type %T take no authorizer", conn)
		}
		return registerer.RegisterAuthorizer(func(action sqlite.AuthorizerActionCode, arg1, arg2, _, _ string) sqlite.AuthorizerReturnCode {
			if authorized(write, action, arg1, arg2) {
				return sqlite.AuthorizerOK
			}
			return sqlite.AuthorizerDeny
		})
	}
}

// reading are the pragmas that SELECT may read as tables, and those that extensions of
// SQLite and the host itself use.
var reading = []string{"table_info", "table_xinfo", "table_list", "index_list", "index_info", "index_xinfo", "foreign_key_list",
	"page_size", "page_count", "data_version", "encoding", "busy_timeout"}

func authorized(write bool, action sqlite.AuthorizerActionCode, arg1, arg2 string) bool {
	switch action {
	case sqlite.AuthSelect, sqlite.AuthRead, sqlite.AuthRecursive, sqlite.AuthTransaction, sqlite.AuthSavepoint:
		return true
	case sqlite.AuthFunction:
		return !strings.EqualFold(arg2, "load_extension")
	case sqlite.AuthPragma:
		return slices.Contains(reading, strings.ToLower(arg1))
	case sqlite.AuthAttach, sqlite.AuthDetach:
		return false
	}
	return write
}

// readySQLite bounds what a statement may hold, and the wait for locks.
func readySQLite(ctx context.Context, conn *sql.Conn) error {
	for _, limit := range []struct{ id, value int }{
		{sqlite3.SQLITE_LIMIT_ATTACHED, 0}, {sqlite3.SQLITE_LIMIT_LENGTH, maxLength}, {sqlite3.SQLITE_LIMIT_WORKER_THREADS, 0},
	} {
		if _, err := sqlite.Limit(conn, limit.id, limit.value); err != nil {
			return err
		}
	}
	left := busyMost.Milliseconds()
	if ms := leftMS(ctx); ms > 0 {
		left = min(left, ms)
	}
	_, err := conn.ExecContext(ctx, fmt.Sprintf("PRAGMA busy_timeout = %d", left))
	return err
}

// beginSQLite takes the lock for writing at once: two transactions that read first and
// write then could not both go ahead.
func beginSQLite(write bool) func(string, bool) []string {
	return func(_ string, readOnly bool) []string {
		if write && !readOnly {
			return []string{"BEGIN IMMEDIATE"}
		}
		return []string{"BEGIN"}
	}
}

func formSQLite(name string) form {
	if name == "DATE" {
		return formDate
	}
	return formPlain
}

func faultSQLite(err error) *access.Fault {
	var own *sqlite.Error
	if !errors.As(err, &own) {
		return nil
	}
	f := &access.Fault{Code: access.CodeRefused, Message: "the database refused the statement: " + own.Error(), Detail: fmt.Sprintf("SQLITE %d", own.Code())}
	code := own.Code() & 0xff
	if strings.Contains(own.Error(), "not authorized to use function") { // a plain error, where others have SQLITE_AUTH
		code = sqlite3.SQLITE_AUTH
	}
	switch code {
	case sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED:
		f.Code, f.Retryable = access.CodeConflict, true
		f.Message = "another connection held the lock of the database for too long"
	case sqlite3.SQLITE_READONLY:
		f.Code, f.Rule, f.Add = access.CodeDenied, `access = "ro"`, `access = "rw"`
		f.Message = "the statement would change the database"
	case sqlite3.SQLITE_AUTH:
		f.Code, f.Rule = access.CodeDenied, "statement"
		f.Message = "the statement does what the connection does not allow: " + own.Error()
	case sqlite3.SQLITE_TOOBIG:
		f.Code = access.CodeTooLarge
		f.Message = fmt.Sprintf("a text, a blob or a row is larger than %d bytes", maxLength)
	case sqlite3.SQLITE_NOMEM:
		f.Code, f.Retryable = access.CodeTooLarge, true // others may have taken the memory
		f.Message = fmt.Sprintf("the statement needs more memory than the %d MiB that SQLite has for all connections: sort, group or join less at once", maxMemory>>20)
	case sqlite3.SQLITE_IOERR, sqlite3.SQLITE_FULL, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_PROTOCOL:
		f.Code, f.Retryable = access.CodeUnreachable, true
		f.Message = "the file of the database cannot be read or written"
	case sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB:
		f.Message = "the file is damaged, or no database"
	case sqlite3.SQLITE_INTERRUPT:
		return timedOut()
	}
	return f
}
