// Package sdksql gives plugins a *sql.DB whose statements the host runs, on PostgreSQL,
// MySQL, MariaDB or SQLite, so that code for database/sql works in a plugin. The plugin
// sees neither the address nor the credentials of the database.
//
// The host has one database connection for an attempt and a name. While a transaction is
// open, statements beside it are refused, and while the rows of a large result are read
// from PostgreSQL or MySQL, so are further statements: read them to their end, or close
// them, first.
package sdksql

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"runtime"
	"sync"

	"github.com/flowhost/flowhost/sdk"
	"github.com/flowhost/flowhost/sdk/internal/guest"
)

// Open returns a database for a connection of the flow. Nothing is reached before the first
// statement. Placeholders are those of the database: $1 for PostgreSQL, ? for the others.
// Errors wrap an *[sdk.OperationError], whose Detail is the SQLSTATE or the error number.
// The database ends with the call; closing it is not required.
func Open(ctx sdk.Context, connection string) *sql.DB {
	c := &connector{ctx: ctx, name: connection}
	c.park(1) // OpenDB starts one that waits for connections to be missing
	return sql.OpenDB(c)
}

// connector makes connections that all are the same one of the host.
type connector struct {
	ctx  sdk.Context
	name string

	mu sync.Mutex
	tx *conn // that has a transaction; nil for none
}

var errNoCall = errors.New("sdksql: the context is not one of a call")

// Connect implements driver.Connector.
func (c *connector) Connect(context.Context) (driver.Conn, error) {
	operator, ok := c.ctx.(guest.Operator)
	if !ok {
		return nil, errNoCall
	}
	return &conn{connector: c, operator: operator}, nil
}

// Close implements io.Closer, for sql.DB.
func (c *connector) Close() error {
	c.park(-1)
	return nil
}

// park counts goroutines of database/sql that only wait, so that they do not make operations
// slower, as those do that have something else to do meanwhile.
func (c *connector) park(goroutines int) {
	if operator, ok := c.ctx.(guest.Operator); ok {
		operator.Park(goroutines)
	}
}

// Driver implements driver.Connector.
func (c *connector) Driver() driver.Driver { return noDriver{} }

type noDriver struct{}

// Open implements driver.Driver.
func (noDriver) Open(string) (driver.Conn, error) {
	return nil, errors.New("sdksql: a database is opened by sdksql.Open")
}

// conn runs statements. It implements what database/sql asks of newer drivers.
type conn struct {
	*connector
	operator guest.Operator
}

// head begins the head of an operation.
func (c *conn) head() *guest.Head {
	head := new(guest.Head)
	head.Text("connection", c.name)
	return head
}

// operate performs an operation, unless another conn has a transaction: it would become a
// part of that.
func (c *conn) operate(ctx context.Context, kind string, head *guest.Head) (guest.Reply, error) {
	c.mu.Lock()
	foreign := c.tx != nil && c.tx != c
	c.mu.Unlock()
	if foreign {
		return guest.Reply{}, errors.New("sdksql: a transaction is open: use its methods, or end it before")
	}
	runtime.Gosched() // goroutines of database/sql for earlier rows end: with them the operation would take longer
	return c.operator.Operate(ctx, kind, head, nil)
}

// PrepareContext implements driver.ConnPrepareContext. The host prepares nothing.
func (c *conn) PrepareContext(_ context.Context, query string) (driver.Stmt, error) {
	return &statement{c, query}, nil
}

// Prepare implements driver.Conn.
func (c *conn) Prepare(query string) (driver.Stmt, error) { return &statement{c, query}, nil }

// Close implements driver.Conn.
func (c *conn) Close() error { return nil }

// Begin implements driver.Conn.
func (c *conn) Begin() (driver.Tx, error) { return c.BeginTx(c.ctx, driver.TxOptions{}) }

// isolations are the host's words for levels.
var isolations = map[sql.IsolationLevel]string{
	sql.LevelDefault: "", sql.LevelReadUncommitted: "read uncommitted", sql.LevelReadCommitted: "read committed",
	sql.LevelRepeatableRead: "repeatable read", sql.LevelSerializable: "serializable",
}

// BeginTx implements driver.ConnBeginTx.
func (c *conn) BeginTx(ctx context.Context, options driver.TxOptions) (driver.Tx, error) {
	isolation, known := isolations[sql.IsolationLevel(options.Isolation)]
	if !known {
		return nil, errors.New("sdksql: the isolation level is not supported")
	}
	head := c.head()
	head.Text("isolation", isolation)
	head.Bool("read_only", options.ReadOnly)
	if _, err := c.operate(ctx, "sql.begin", head); err != nil {
		return nil, err
	}
	c.mu.Lock()
	c.tx = c
	c.mu.Unlock()
	c.park(1) // it waits for the end of ctx
	return transaction{c}, nil
}

type transaction struct{ conn *conn }

// Commit implements driver.Tx.
func (t transaction) Commit() error { return t.end("sql.commit") }

// Rollback implements driver.Tx.
func (t transaction) Rollback() error { return t.end("sql.rollback") }

func (t transaction) end(kind string) error {
	_, err := t.conn.operate(t.conn.ctx, kind, t.conn.head())
	t.conn.park(-1)
	t.conn.mu.Lock()
	defer t.conn.mu.Unlock()
	t.conn.tx = nil
	return err
}

// Ping implements driver.Pinger.
func (c *conn) Ping(ctx context.Context) error {
	rows, err := c.QueryContext(ctx, "SELECT 1", nil)
	if err != nil {
		return err
	}
	return rows.Close()
}

// statement is a query with a name.
type statement struct {
	conn  *conn
	query string
}

// Close implements driver.Stmt.
func (s *statement) Close() error { return nil }

// NumInput implements driver.Stmt: the database counts.
func (s *statement) NumInput() int { return -1 }

// Exec implements driver.Stmt.
func (s *statement) Exec(args []driver.Value) (driver.Result, error) {
	return s.conn.ExecContext(s.conn.ctx, s.query, named(args))
}

// Query implements driver.Stmt.
func (s *statement) Query(args []driver.Value) (driver.Rows, error) {
	return s.conn.QueryContext(s.conn.ctx, s.query, named(args))
}

// ExecContext implements driver.StmtExecContext.
func (s *statement) ExecContext(ctx context.Context, args []driver.NamedValue) (driver.Result, error) {
	return s.conn.ExecContext(ctx, s.query, args)
}

// QueryContext implements driver.StmtQueryContext.
func (s *statement) QueryContext(ctx context.Context, args []driver.NamedValue) (driver.Rows, error) {
	return s.conn.QueryContext(ctx, s.query, args)
}

func named(args []driver.Value) []driver.NamedValue {
	out := make([]driver.NamedValue, len(args))
	for i, value := range args {
		out[i] = driver.NamedValue{Ordinal: i + 1, Value: value}
	}
	return out
}
