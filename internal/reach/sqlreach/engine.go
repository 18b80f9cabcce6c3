package sqlreach

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/flowhost/flowhost/run/access"
)

// engine is what differs between types of databases.
type engine struct {
	connector driver.Connector

	// ready prepares a connection for an attempt: it gives the server the time that is left, and
	// fails if the server has ended the connection meanwhile.
	ready func(ctx context.Context, conn *sql.Conn) error
	// reset makes a connection pristine for the next attempt. Nil: one on which a statement
	// may have changed the session is closed.
	reset func(ctx context.Context, conn *sql.Conn) error
	// aborted reports whether the database has given up the open transaction. Nil: unknown.
	aborted func(conn *sql.Conn) bool

	begin   func(isolation string, readOnly bool) []string
	exec    func(ctx context.Context, conn *sql.Conn, text string, args []any) (execHead, error)
	fault   func(err error) *access.Fault // nil for an error that is not the database's
	form    func(typeName string) form
	timeArg func(t time.Time) any

	wrapped bool // a statement of access "ro" needs a transaction of its own, READ ONLY
	shared  bool // statements can run while rows are read
}

// execHead is the head of the answer to sql.exec.
type execHead struct {
	RowsAffected int64  `json:"rows_affected"`
	LastInsertID *int64 `json:"last_insert_id,omitempty"`
}

// execResult runs a statement through database/sql.
func execResult(ctx context.Context, conn *sql.Conn, text string, args []any) (execHead, error) {
	result, err := conn.ExecContext(ctx, text, args...)
	if err != nil {
		return execHead{}, err
	}
	var head execHead
	if head.RowsAffected, err = result.RowsAffected(); err != nil {
		return execHead{}, err
	}
	if id, err := result.LastInsertId(); err == nil {
		head.LastInsertID = &id
	}
	return head, nil
}

// isolations are the levels that a transaction may ask for; empty is the database's default.
var isolations = []string{"", "read uncommitted", "read committed", "repeatable read", "serializable"}

func checkIsolation(level string) *access.Fault {
	if !slices.Contains(isolations, level) {
		return invalid("there is no such isolation level: pass one of %s", strings.Join(isolations[1:], ", "))
	}
	return nil
}

// leftMS is the milliseconds until a context's deadline; 0 without one.
func leftMS(ctx context.Context) int64 {
	deadline, ok := ctx.Deadline()
	if !ok {
		return 0
	}
	return max(1, time.Until(deadline).Milliseconds())
}

// setUp is a connector whose connections have run statements, once.
type setUp struct {
	driver.Connector
	check      func() error // before connecting
	statements []string
	then       func(driver.Conn) error
}

// Connect opens a connection.
func (s setUp) Connect(ctx context.Context) (driver.Conn, error) {
	if s.check != nil {
		if err := s.check(); err != nil {
			return nil, err
		}
	}
	conn, err := s.Connector.Connect(ctx)
	if err != nil {
		return nil, err
	}
	if err = s.run(ctx, conn); err != nil {
		_ = conn.Close() // it was never used
		return nil, err
	}
	return conn, nil
}

func (s setUp) run(ctx context.Context, conn driver.Conn) error {
	execer, ok := conn.(driver.ExecerContext)
	if !ok {
		return fmt.Errorf("connections of type %T run no statements", conn)
	}
	for _, text := range s.statements {
		if _, err := execer.ExecContext(ctx, text, nil); err != nil {
			return err
		}
	}
	if s.then != nil {
		return s.then(conn)
	}
	return nil
}
