package sdksql

import (
	"context"
	"database/sql/driver"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/flowhost/flowhost/sdk/internal/guest"
)

// statementHead is the head of a statement with its arguments in the host's form.
func (c *conn) statementHead(query string, args []driver.NamedValue) (*guest.Head, error) {
	head := c.head()
	head.Text("sql", query)
	if len(args) == 0 {
		return head, nil
	}
	var list strings.Builder
	for i, arg := range args {
		if arg.Name != "" {
			return nil, errors.New("sdksql: arguments have no names: use the placeholders of the database")
		}
		if i > 0 {
			list.WriteByte(',')
		}
		text, err := argument(arg.Value)
		if err != nil {
			return nil, fmt.Errorf("sdksql: argument %d: %w", arg.Ordinal, err)
		}
		list.Write(text)
	}
	head.Raw("args", "["+list.String()+"]")
	return head, nil
}

// exact is the largest integer that each reader of JSON keeps.
const exact = 1 << 53

// argument is a value as the host reads it.
func argument(value driver.Value) ([]byte, error) {
	switch v := value.(type) {
	case int64:
		if v > exact || v < -exact {
			return fmt.Appendf(nil, `{"int":"%d"}`, v), nil
		}
		return strconv.AppendInt(nil, v, 10), nil
	case float64:
		text := strconv.FormatFloat(v, 'g', -1, 64)
		if strings.ContainsAny(text, "IN") { // Inf and NaN
			return fmt.Appendf(nil, `{"float":"%s"}`, strings.NewReplacer("+Inf", "Infinity", "-Inf", "-Infinity").Replace(text)), nil
		}
		if !strings.ContainsAny(text, ".e") {
			text += ".0"
		}
		return []byte(text), nil
	case []byte:
		if v == nil {
			return []byte("null"), nil
		}
		return fmt.Appendf(nil, `{"bytes":"%s"}`, base64.StdEncoding.EncodeToString(v)), nil
	case time.Time:
		return fmt.Appendf(nil, `{"time":"%s"}`, v.Format(time.RFC3339Nano)), nil
	case nil, bool, string:
		return json.Marshal(v)
	}
	return nil, fmt.Errorf("a value of type %T is not supported", value)
}

// result is that of a statement without rows.
type result struct{ affected, id int64 }

// LastInsertId implements driver.Result.
func (r result) LastInsertId() (int64, error) { return r.id, nil }

// RowsAffected implements driver.Result.
func (r result) RowsAffected() (int64, error) { return r.affected, nil }

// ExecContext implements driver.ExecerContext.
func (c *conn) ExecContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Result, error) {
	head, err := c.statementHead(query, args)
	if err != nil {
		return nil, err
	}
	reply, err := c.operate(ctx, "sql.exec", head)
	if err != nil {
		return nil, err
	}
	var r result
	guest.Members(reply.Head, func(name string, value []byte) {
		switch name {
		case "rows_affected":
			r.affected = guest.IntOf(value)
		case "last_insert_id":
			r.id = guest.IntOf(value)
		}
	})
	return r, nil
}

// QueryContext implements driver.QueryerContext.
func (c *conn) QueryContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Rows, error) {
	head, err := c.statementHead(query, args)
	if err != nil {
		return nil, err
	}
	reply, err := c.operate(ctx, "sql.query", head)
	if err != nil {
		return nil, err
	}
	r := &rows{conn: c, ctx: ctx}
	r.take(reply)
	return r, nil
}

// rows is a result, of which a page is here.
type rows struct {
	conn   *conn
	ctx    context.Context
	names  []string
	types  []string
	cursor int64    // of the rest; 0 when there is none
	page   [][]byte // rows that were not read
}

// take takes a page.
func (r *rows) take(reply guest.Reply) {
	r.cursor, r.page = 0, r.page[:0]
	guest.Members(reply.Head, func(name string, value []byte) {
		switch name {
		case "cursor":
			r.cursor = guest.IntOf(value)
		case "columns":
			guest.Elements(value, r.column)
		}
	})
	guest.Elements(reply.Body, func(row []byte) { r.page = append(r.page, row) })
}

func (r *rows) column(value []byte) {
	var column, kind string
	guest.Members(value, func(name string, value []byte) {
		switch name {
		case "name":
			column = guest.TextOf(value)
		case "type":
			kind = guest.TextOf(value)
		}
	})
	r.names, r.types = append(r.names, column), append(r.types, kind)
}

// Columns implements driver.Rows.
func (r *rows) Columns() []string { return r.names }

// ColumnTypeDatabaseTypeName implements driver.RowsColumnTypeDatabaseTypeName.
func (r *rows) ColumnTypeDatabaseTypeName(i int) string { return r.types[i] }

// Close implements driver.Rows.
func (r *rows) Close() error {
	if r.cursor == 0 {
		return nil
	}
	head := r.conn.head()
	head.Int("cursor", r.cursor)
	r.cursor = 0
	_, err := r.conn.operate(r.ctx, "sql.close", head)
	return err
}

// Next implements driver.Rows.
func (r *rows) Next(into []driver.Value) error {
	for len(r.page) == 0 {
		if r.cursor == 0 {
			return io.EOF
		}
		head := r.conn.head()
		head.Int("cursor", r.cursor)
		reply, err := r.conn.operate(r.ctx, "sql.next", head)
		if err != nil {
			r.cursor = 0
			return err
		}
		r.take(reply)
	}
	i, fault := 0, error(nil)
	guest.Elements(r.page[0], func(value []byte) {
		if i < len(into) && fault == nil {
			into[i], fault = decode(value, r.types[i])
		}
		i++
	})
	r.page = r.page[1:]
	if fault == nil && i != len(into) {
		fault = fmt.Errorf("sdksql: the host gave a row of %d values, not %d", i, len(into))
	}
	return fault
}

// decode is a value of a column of that type.
func decode(value []byte, kind string) (driver.Value, error) {
	switch value[0] {
	case 'n':
		return nil, nil
	case 't', 'f':
		return value[0] == 't', nil
	case '"':
		return textOr(guest.TextOf(value), kind), nil
	case '{':
		return special(value)
	}
	if strings.ContainsAny(string(value), ".eE") {
		return strconv.ParseFloat(string(value), 64)
	}
	return strconv.ParseInt(string(value), 10, 64)
}

// textOr is the time that a text of a column with times states, and the text itself where it
// states none.
func textOr(text, kind string) driver.Value {
	layout := time.RFC3339Nano
	switch kind {
	case "DATE":
		layout = time.DateOnly
	case "TIMESTAMP", "TIMESTAMPTZ", "DATETIME":
	default:
		return text
	}
	if at, err := time.Parse(layout, text); err == nil {
		return at
	}
	return text
}

// special is a value that JSON has no form for.
func special(value []byte) (out driver.Value, err error) {
	err = errors.New("sdksql: a value has a form that is not known")
	guest.Members(value, func(name string, value []byte) {
		text := guest.TextOf(value)
		switch name {
		case "int":
			if out, err = strconv.ParseInt(text, 10, 64); err != nil {
				out, err = text, nil // larger than any integer here
			}
		case "float":
			out, err = strconv.ParseFloat(text, 64)
		case "bytes":
			out, err = base64.StdEncoding.DecodeString(text)
		}
	})
	return out, err
}
