// Package sqlreach performs the operations sql.* on PostgreSQL, MySQL or MariaDB, and
// SQLite.
//
//	pools := sqlreach.New(sqlreach.Config{Secrets: secrets, Dial: dial})
//	session := pools.Session(caller, resolve) // one for each attempt
//	answer := session.Do(ctx, op)             // any number, also at once
//	session.Close()                           // rolls back, gives connections back
//	pools.Close()
//
// # Operations
//
// Heads are objects; members that are not listed are refused.
//
//	sql.query    {"connection", "sql", "args", "page_rows", "max_rows"}
//	             → {"columns": [{"name", "type", "nullable"}], "rows", "cursor", "truncated"}
//	sql.next     {"connection", "cursor"} → {"rows", "cursor", "truncated"}
//	sql.close    {"connection", "cursor"} → {}
//	sql.exec     {"connection", "sql", "args"} → {"rows_affected", "last_insert_id"}
//	sql.begin    {"connection", "isolation", "read_only"} → {}
//	sql.commit   {"connection"} → {}
//	sql.rollback {"connection"} → {}
//
// The body of the answer to sql.query and sql.next is a page: a JSON array of rows, which
// are arrays of values, at most [PageBytes] long. "cursor" is absent when no rows are
// left. "truncated" is set when max_rows has cut the result off. "nullable" is absent when
// the database does not report it, "last_insert_id" for PostgreSQL. "isolation" is one of
// "read uncommitted", "read committed", "repeatable read" and "serializable".
//
// # Values
//
// A value of a row, and an argument, is one of
//
//	null
//	true, false
//	12                        an integer of at most 2^53; no point, no exponent
//	{"int": "9223372036854775807"}  any other integer
//	1.0, 1.5e300              a float: always with a point or an exponent
//	{"float": "NaN"}          also "Infinity", "-Infinity"
//	"text"
//	{"bytes": "AP8="}         base64; also text that is not UTF-8
//
// In rows the type of the column, the database's own name for it in upper case, says what
// a text is: numeric and decimal values, UUIDs, JSON, arrays and intervals are texts in the
// database's form; a timestamp is RFC 3339 with up to nine digits of a second, in UTC, or
// with Z for a type without zone; a date is 2006-01-02. What RFC 3339 cannot express
// (infinity, 0000-00-00) stays as the database writes it. Arguments may also be
//
//	{"time": "2026-01-02T03:04:05.123456789Z"}
//	{"decimal": "12.50"}
//
// # Statements
//
// One statement for each operation, with its values as arguments. Statements are judged by
// their first keyword, those that begin with WITH by the keyword after the last table
// expression: a keyword that is not in the table is refused, and so is everything that
// would change the session, end a transaction or leave the database. That is the readable
// half; the other half is not based on text. PostgreSQL gets each statement by the extended
// protocol, which takes one only, and for access "ro" within a READ ONLY transaction;
// MySQL's protocol flag for several statements and the one for files of the client are
// never set, and a session for "ro" is READ ONLY; SQLite asks an authorizer about each
// action of a statement, and opens the file with mode=ro for "ro".
//
// # Sessions
//
// An attempt has one connection of a database for each name. It is kept between
// operations, but given away when another attempt waits for one and no transaction and no
// cursor is open. PostgreSQL and MySQL can run nothing else on a connection while rows are
// read from it, so a statement is refused then; SQLite has no such bound. At most
// [MaxCursors] results are open in an attempt.
//
// A PostgreSQL connection is reset before another attempt gets it. MySQL's driver has no
// reset and SQLite no need of one: there a connection on which a statement may have
// changed the session is closed. A connection on which a statement was canceled or broke
// is closed always.
//
// # Errors
//
// Faults contain neither the DSN nor a part of it: not the user, the host or the name of
// the database. Their Detail is the SQLSTATE, MySQL's error number or SQLite's result code.
// Retryable are broken connections, deadlocks, serialization failures and timeouts.
//
// # Goroutines
//
// The package starts none. Each pool has those of its sql.DB and its drivers; they end
// with [Pools.Close] or when the pool is closed for lack of use. Pools and sessions are
// safe for concurrent use; operations of a session on one connection run one at a time.
package sqlreach
