package sqlreach

import (
	"context"

	"github.com/flowhost/flowhost/run/access"
)

// mode is what statements may do now.
func (h *hold) mode() access.Mode {
	if h.readOnly || h.declared.SQL.Access != access.ReadWrite {
		return access.ReadOnly
	}
	return access.ReadWrite
}

// admit decides whether a statement may run, and waits for the connection's rate.
func (s *Session) admit(ctx context.Context, h *hold, r *request) ([]any, statement, *access.Fault) {
	e := h.lease.pool.engine
	what, f := judge(h.declared.Type, h.mode(), h.tx, r.SQL)
	if f != nil {
		return nil, what, f
	}
	if f = h.idle(what.keyword); f != nil {
		return nil, what, f
	}
	args, f := decodeArgs(r.Args, e.timeArg)
	if f != nil {
		return nil, what, f
	}
	if f = h.lease.pool.gate.Start(ctx, s.caller.Flow); f != nil {
		return nil, what, f
	}
	h.lease.changed = h.lease.changed || what.changes
	return args, what, nil
}

// idle refuses statements that cannot run now.
func (h *hold) idle(keyword string) *access.Fault {
	switch {
	case h.failed && keyword != "ROLLBACK":
		return conflict("the transaction failed and can only be rolled back: end it with sql.rollback, and start again")
	case len(h.cursors) > 0 && !h.lease.pool.engine.shared:
		return conflict("rows of an earlier query are still open on this connection: read them to the end, close them, or declare a second connection to the same database")
	}
	return nil
}

// wrap begins the host's own transaction around a statement that may only read. The lock
// of the hold is held until unwrap, or the transaction lasts as long as the cursor.
func (h *hold) wrap(ctx context.Context) error {
	if !h.lease.pool.engine.wrapped || h.tx {
		return nil
	}
	_, err := h.lease.conn.ExecContext(ctx, "BEGIN READ ONLY")
	h.wrapped = err == nil
	return err
}

// unwrap ends the host's own transaction.
func (h *hold) unwrap(ctx context.Context) {
	if !h.wrapped {
		return
	}
	h.wrapped = false
	if _, err := h.lease.conn.ExecContext(ctx, "ROLLBACK"); err != nil {
		h.lease.broken = true
	}
}

// statementFailed is the answer to a statement that failed. What is left open of it ends.
func (h *hold) statementFailed(ctx context.Context, err error) access.Answer {
	f := h.note(ctx, err)
	if !h.lease.broken {
		h.unwrap(ctx)
	}
	return failed(f)
}

// note is the fault of an error, after which the connection or the transaction may be of
// no use.
func (h *hold) note(ctx context.Context, err error) *access.Fault {
	f := h.lease.pool.statementFault(ctx, err)
	switch {
	case broken(err) || ctx.Err() != nil || f.Code == access.CodeUnreachable:
		h.lease.broken = true
		if h.tx {
			f.Message += "; the transaction is rolled back"
		}
	case h.tx && f.Retryable:
		h.failed = true // some databases have rolled it back, and would run what follows without one
	}
	return f
}

func (s *Session) exec(ctx context.Context, h *hold, r *request) access.Answer {
	args, _, f := s.admit(ctx, h, r)
	if f != nil {
		return failed(f)
	}
	if err := h.wrap(ctx); err != nil {
		return h.statementFailed(ctx, err)
	}
	head, err := h.lease.pool.engine.exec(ctx, h.lease.conn, r.SQL, args)
	if err != nil {
		return h.statementFailed(ctx, err)
	}
	h.unwrap(ctx)
	return answer(head, nil)
}

func (s *Session) query(ctx context.Context, h *hold, r *request) access.Answer {
	args, what, f := s.admit(ctx, h, r)
	if f != nil {
		return failed(f)
	}
	if f = s.reserve(); f != nil {
		return failed(f)
	}
	if err := h.wrap(ctx); err != nil {
		s.cursorGone()
		return h.statementFailed(ctx, err)
	}
	queryCtx, cancel := context.WithCancel(h.lease.base)
	stop := context.AfterFunc(ctx, cancel)
	defer stop()
	rows, err := h.lease.conn.QueryContext(queryCtx, r.SQL, args...)
	if err != nil {
		cancel()
		s.cursorGone()
		return h.statementFailed(ctx, err)
	}
	c, columns, err := newCursor(rows, h.lease.pool.engine)
	if err != nil {
		_ = rows.Close() // the first error counts
		cancel()
		s.cursorGone()
		return h.statementFailed(ctx, err)
	}
	c.cancel, c.pageRows, c.writes = cancel, r.PageRows, what.writes
	if r.MaxRows > 0 {
		c.left = r.MaxRows
	}
	c.number = s.nextNumber()
	h.cursors[c.number] = c
	return s.page(ctx, h, c, pageHead{Columns: columns})
}

func (s *Session) next(ctx context.Context, h *hold, r *request) access.Answer {
	c := h.cursors[r.Cursor]
	if c == nil {
		return failed(noCursor())
	}
	stop := c.during(ctx)
	defer stop()
	return s.page(ctx, h, c, pageHead{})
}

func noCursor() *access.Fault {
	return conflict("there is no such cursor: its rows were read to the end, it was closed, or the connection broke")
}

// page reads a page. The cursor ends with its last row, and with an error.
func (s *Session) page(ctx context.Context, h *hold, c *cursor, head pageHead) access.Answer {
	p, err := c.next()
	if err != nil {
		f := h.note(ctx, err)
		if err := s.finish(ctx, h, c, false); err != nil {
			h.lease.broken = true
		}
		return failed(f)
	}
	head.Rows, head.Truncated = p.rows, p.truncated
	switch {
	case !p.done:
		head.Cursor = c.number
	default:
		if err := s.finish(ctx, h, c, !p.truncated); err != nil {
			return h.statementFailed(ctx, err)
		}
	}
	return answer(head, p.body)
}

// drainRows is how many rows are read to the end of a result that nobody asks for. A
// connection with more of them is closed.
const drainRows = 1000

// finish closes a cursor. Where rows are left, reading the rest is how a server's
// connection becomes usable again. That is always done within a transaction, for which the
// connection must be kept, and for statements that write, which would be rolled back.
func (s *Session) finish(ctx context.Context, h *hold, c *cursor, complete bool) error {
	if !complete && !h.lease.broken && !h.lease.pool.engine.shared && !h.tx && !c.writes {
		h.lease.broken = !c.drain(drainRows)
	}
	if h.lease.broken {
		s.drop(h, c)
		return nil
	}
	err := c.rows.Close()
	c.cancel()
	s.gone(h, c)
	if err == nil {
		err = ctx.Err()
	}
	if err == nil && len(h.cursors) == 0 {
		h.unwrap(ctx)
	}
	return err
}

// drop closes a cursor whose connection is not used any more.
func (s *Session) drop(h *hold, c *cursor) {
	if !h.lease.pool.engine.shared {
		h.lease.broken = true
		c.cancel() // instead of reading the rest
	}
	_ = c.rows.Close() // its error is that it was canceled
	c.cancel()
	s.gone(h, c)
}

func (s *Session) gone(h *hold, c *cursor) {
	if h.cursors[c.number] == c {
		delete(h.cursors, c.number)
		s.cursorGone()
	}
}

func (s *Session) closeCursor(ctx context.Context, h *hold, r *request) access.Answer {
	c := h.cursors[r.Cursor]
	if c == nil {
		return answer(struct{}{}, nil) // closing twice is no mistake
	}
	stop := c.during(ctx)
	defer stop()
	if err := s.finish(ctx, h, c, false); err != nil {
		return h.statementFailed(ctx, err)
	}
	return answer(struct{}{}, nil)
}

// reserve counts a cursor before it is opened.
func (s *Session) reserve() *access.Fault {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.cursors == MaxCursors {
		return &access.Fault{Code: access.CodeTooLarge, Message: "16 results are open already: read them to the end, or close them"}
	}
	s.cursors++
	return nil
}

func (s *Session) cursorGone() {
	s.mu.Lock()
	s.cursors--
	s.mu.Unlock()
}

func (s *Session) nextNumber() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.last++
	return s.last
}

func (s *Session) begin(ctx context.Context, h *hold, r *request) access.Answer {
	if h.tx {
		return failed(conflict("a transaction is open already: end it with sql.commit or sql.rollback"))
	}
	if f := h.idle("BEGIN"); f != nil {
		return failed(f)
	}
	readOnly := r.ReadOnly || h.mode() == access.ReadOnly
	for _, text := range h.lease.pool.engine.begin(r.Isolation, readOnly) {
		if _, err := h.lease.conn.ExecContext(ctx, text); err != nil {
			return h.statementFailed(ctx, err)
		}
	}
	h.tx, h.readOnly, h.failed = true, readOnly, false
	return answer(struct{}{}, nil)
}

func (s *Session) commit(ctx context.Context, h *hold, _ *request) access.Answer {
	if f := h.canEnd(); f != nil {
		return failed(f)
	}
	if f := h.idle("ROLLBACK"); f != nil {
		return failed(f)
	}
	if e := h.lease.pool.engine; h.failed || e.aborted != nil && e.aborted(h.lease.conn) {
		if a := s.end(ctx, h, "ROLLBACK"); a.Fault != nil {
			return a
		}
		f := conflict("the transaction was rolled back instead: one of its statements failed")
		f.Retryable = true
		return failed(f)
	}
	return s.end(ctx, h, "COMMIT")
}

func (s *Session) rollback(ctx context.Context, h *hold, _ *request) access.Answer {
	if f := h.canEnd(); f != nil {
		return failed(f)
	}
	for _, c := range h.cursors {
		stop := c.during(ctx)
		err := s.finish(ctx, h, c, false)
		stop()
		if err != nil {
			return h.statementFailed(ctx, err)
		}
	}
	return s.end(ctx, h, "ROLLBACK")
}

func (h *hold) canEnd() *access.Fault {
	if h.lease == nil || !h.tx {
		return conflict("no transaction is open: it ended, the connection broke, or sql.begin is missing")
	}
	return nil
}

// end ends the transaction. Whether a commit was done is unknown when the connection
// breaks.
func (s *Session) end(ctx context.Context, h *hold, how string) access.Answer {
	_, err := h.lease.conn.ExecContext(ctx, how)
	h.tx, h.readOnly, h.failed = false, false, false
	if err == nil {
		return answer(struct{}{}, nil)
	}
	a := h.statementFailed(ctx, err)
	if how == "COMMIT" && a.Fault.Code != access.CodeRefused {
		a.Fault.Message += "; whether the transaction was committed is unknown"
		a = failed(a.Fault)
	}
	// A database that refused the commit may have left the transaction open.
	h.lease.broken = true
	return a
}
