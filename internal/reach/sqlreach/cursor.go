package sqlreach

import (
	"context"
	"database/sql"
	"encoding/json"

	"github.com/flowhost/flowhost/run/access"
)

// Bounds of results.
const (
	PageBytes  = 1 << 20 // a page's JSON
	MaxCursors = 16      // open at once in an attempt
)

// column is the head's description of a column.
type column struct {
	Name     string `json:"name"`
	Type     string `json:"type"`
	Nullable *bool  `json:"nullable,omitempty"`
}

// cursor is a result that is read in pages. Its hold's lock guards it.
type cursor struct {
	number   int
	rows     *sql.Rows
	cancel   context.CancelFunc // of the context of the query, which outlives an operation
	forms    []form
	dest     []any
	values   []any
	row      []byte // memory of pending
	pending  []byte // row that was read and belongs to the next page
	pageRows int    // at most; 0: no bound but bytes
	writes   bool   // the statement may change rows
	left     int    // rows of the result that may still be returned; -1: all
}

// page is what is read at once.
type page struct {
	body      []byte
	rows      int
	done      bool // no rows are left
	truncated bool // there were more than max_rows
}

// newCursor describes the rows.
func newCursor(rows *sql.Rows, e *engine) (*cursor, []column, error) {
	types, err := rows.ColumnTypes()
	if err != nil {
		return nil, nil, err
	}
	c := &cursor{rows: rows, left: -1}
	columns := make([]column, len(types))
	c.forms, c.dest, c.values = make([]form, len(types)), make([]any, len(types)), make([]any, len(types))
	for i, t := range types {
		columns[i] = column{Name: t.Name(), Type: t.DatabaseTypeName()}
		if nullable, ok := t.Nullable(); ok {
			columns[i].Nullable = &nullable
		}
		c.forms[i] = e.form(columns[i].Type)
		c.dest[i] = &c.values[i]
	}
	return c, columns, nil
}

// next reads a page. One row more than fits is read, so that an answer says when a result
// ends.
func (c *cursor) next() (page, error) {
	p := page{body: append(make([]byte, 0, 512), '[')}
	for {
		row := c.pending
		if row == nil {
			more, err := c.read()
			if err != nil {
				return page{}, err
			}
			if !more {
				p.done = true
				break
			}
			if c.left == 0 {
				p.done, p.truncated = true, true
				break
			}
			row = c.pending
		}
		if len(row)+2 > PageBytes {
			return page{}, &access.Fault{Code: access.CodeTooLarge,
				Message: "a row of the result is larger than a page: select fewer columns, or parts of the long ones"}
		}
		if c.pageRows > 0 && p.rows == c.pageRows || len(p.body)+len(row)+2 > PageBytes {
			break
		}
		if p.rows > 0 {
			p.body = append(p.body, ',')
		}
		p.body = append(p.body, row...)
		c.pending = nil
		p.rows++
		if c.left > 0 {
			c.left--
		}
	}
	p.body = append(p.body, ']')
	return p, nil
}

// read reads a row into pending.
func (c *cursor) read() (more bool, err error) {
	if !c.rows.Next() {
		return false, c.rows.Err()
	}
	if err := c.rows.Scan(c.dest...); err != nil {
		return false, err
	}
	row := append(c.row[:0], '[')
	for i, v := range c.values {
		if i > 0 {
			row = append(row, ',')
		}
		row = appendValue(row, v, c.forms[i])
	}
	c.row = append(row, ']')
	c.pending = c.row
	return true, nil
}

// drain reads rows that nobody wants, and reports whether the result ended.
func (c *cursor) drain(most int) bool {
	for range most {
		if !c.rows.Next() {
			return true
		}
	}
	return false
}

// during lets the end of an operation's context cancel the query. The function that it
// returns ends that.
func (c *cursor) during(ctx context.Context) func() bool {
	return context.AfterFunc(ctx, c.cancel)
}

// pageHead is the head of the answers to sql.query and sql.next.
type pageHead struct {
	Columns   []column `json:"columns,omitempty"`
	Rows      int      `json:"rows"`
	Cursor    int      `json:"cursor,omitempty"`
	Truncated bool     `json:"truncated,omitempty"`
}

func answer(head any, body []byte) access.Answer {
	text, err := json.Marshal(head)
	if err != nil {
		return failed(&access.Fault{Code: access.CodeInternal, Message: "the answer could not be encoded: " + err.Error()})
	}
	return access.Answer{Head: text, Body: body}
}

func failed(f *access.Fault) access.Answer {
	text, err := json.Marshal(f)
	if err != nil {
		text = []byte(`{"code":"internal"}`) // texts and numbers always encode
	}
	return access.Answer{Head: text, Fault: f}
}
