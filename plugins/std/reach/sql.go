package main

import (
	"database/sql"
	"encoding/base64"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/flowhost/flowhost/sdk"
	"github.com/flowhost/flowhost/sdk/sdksql"
)

// Statement is one statement for a database.
type Statement struct {
	Connection string  `json:"connection"`
	SQL        string  `json:"sql"`
	Args       []Value `json:"args,omitempty"`     // of the placeholders, in the form of the database: $1, or ? for MySQL
	MaxRows    int     `json:"max_rows,omitempty"` // default 10 000
}

// Rows is the result of a query.
type Rows struct {
	Columns   []string         `json:"columns"`
	Rows      []map[string]any `json:"rows"`
	Truncated bool             `json:"truncated"` // there are more than max_rows
}

func query(ctx sdk.Context, in Statement) (Rows, error) {
	if in.MaxRows <= 0 {
		in.MaxRows = 10_000
	}
	db := sdksql.Open(ctx, in.Connection)
	defer db.Close()
	rows, err := db.QueryContext(ctx, in.SQL, plainly(in.Args)...)
	if err != nil {
		return Rows{}, err
	}
	defer rows.Close()
	out := Rows{Rows: []map[string]any{}}
	if out.Columns, err = rows.Columns(); err != nil {
		return out, err
	}
	values, into := make([]any, len(out.Columns)), make([]any, len(out.Columns))
	for i := range values {
		into[i] = &values[i]
	}
	for rows.Next() {
		if len(out.Rows) == in.MaxRows {
			out.Truncated = true
			break
		}
		if err := rows.Scan(into...); err != nil {
			return out, err
		}
		row := make(map[string]any, len(values))
		for i, name := range out.Columns {
			row[name] = plain(values[i])
		}
		out.Rows = append(out.Rows, row)
	}
	return out, rows.Err()
}

func plainly(values []Value) []any {
	all := make([]any, len(values))
	for i, v := range values {
		all[i] = v.Value
	}
	return all
}

// plain is a value of a database as JSON has it: times as text of RFC 3339, bytes as text if
// they are one, and otherwise in base64.
func plain(value any) any {
	switch v := value.(type) {
	case time.Time:
		return v.Format(time.RFC3339Nano)
	case []byte:
		if utf8.Valid(v) {
			return string(v)
		}
		return base64.StdEncoding.EncodeToString(v)
	}
	return value
}

// Changed is what a statement has changed.
type Changed struct {
	Rows int64 `json:"rows"`
}

func execute(ctx sdk.Context, in Statement) (Changed, error) {
	db := sdksql.Open(ctx, in.Connection)
	defer db.Close()
	result, err := db.ExecContext(ctx, in.SQL, plainly(in.Args)...)
	if err != nil {
		return Changed{}, err
	}
	n, err := result.RowsAffected()
	return Changed{n}, err
}

// Insert is rows for a table.
type Insert struct {
	Connection string             `json:"connection"`
	Table      string             `json:"table"` // "orders", "shop.orders"
	Rows       []map[string]Value `json:"rows"`  // all with the columns of the first one; others are null
	Columns    []string           `json:"columns,omitempty"`

	// Key is the columns of a unique key: rows that exist are updated. Without it, such a row
	// is a failure.
	Key []string `json:"key,omitempty"`

	// Dialect is "mysql" for MySQL and MariaDB. Default: PostgreSQL's and SQLite's.
	Dialect string `json:"dialect,omitempty"`
}

// batch is how many rows one statement inserts at most, and parameters how many values: the
// bound of SQLite and of PostgreSQL's protocol is above it.
const (
	batch      = 500
	parameters = 30_000
)

func insert(ctx sdk.Context, in Insert) (Changed, error) {
	if len(in.Rows) == 0 {
		return Changed{}, nil
	}
	if len(in.Columns) == 0 {
		in.Columns = slices.Sorted(maps.Keys(in.Rows[0]))
	}
	d, err := in.dialect()
	if err != nil {
		return Changed{}, err
	}
	db := sdksql.Open(ctx, in.Connection)
	defer db.Close()
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return Changed{}, err
	}
	defer tx.Rollback()
	most := max(min(batch, parameters/len(in.Columns)), 1)
	for rows := range slices.Chunk(in.Rows, most) {
		if err := in.insert(ctx, tx, d, rows); err != nil {
			return Changed{}, err
		}
	}
	return Changed{int64(len(in.Rows))}, tx.Commit()
}

// insert inserts some rows by one statement.
func (in *Insert) insert(ctx sdk.Context, tx *sql.Tx, d dialect, rows []map[string]Value) error {
	args := make([]any, 0, len(rows)*len(in.Columns))
	for i, row := range rows {
		for name := range row {
			if !slices.Contains(in.Columns, name) {
				return sdk.Fail("input", "row %d has the column %q, and the first row has not: name all of them in columns", i, name)
			}
		}
		for _, name := range in.Columns {
			value := row[name]
			if value.Nested() {
				return sdk.Fail("input", "row %d: %q is an object or a list: encode it as text, with jsonencode", i, name)
			}
			args = append(args, value.Value)
		}
	}
	_, err := tx.ExecContext(ctx, d.insert(in, len(rows)), args...)
	return err
}

// dialect is how a database writes names and placeholders.
type dialect struct{ mysql bool }

// name is what the names of tables and columns may be: no quoting is left to chance.
var name = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_$]{0,62}$`)

// dialect checks all names.
func (in *Insert) dialect() (dialect, error) {
	if in.Dialect != "" && in.Dialect != "mysql" {
		return dialect{}, sdk.Fail("input", "dialect is %q, and may be \"mysql\" or left out", in.Dialect)
	}
	parts := strings.Split(in.Table, ".")
	if len(parts) > 2 {
		return dialect{}, sdk.Fail("input", "table %q is not the name of a table", in.Table)
	}
	for _, n := range slices.Concat(parts, in.Columns, in.Key) {
		if !name.MatchString(n) {
			return dialect{}, sdk.Fail("input", "%q is not the name of a table or a column: letters, digits and _ make one", n)
		}
	}
	for _, key := range in.Key {
		if !slices.Contains(in.Columns, key) {
			return dialect{}, sdk.Fail("input", "the rows do not have the column %q of the key", key)
		}
	}
	return dialect{in.Dialect == "mysql"}, nil
}

func (d dialect) quote(names ...string) []string {
	quote := `"`
	if d.mysql {
		quote = "`"
	}
	quoted := make([]string, len(names))
	for i, n := range names {
		quoted[i] = quote + n + quote
	}
	return quoted
}

// insert is the statement for so many rows.
func (d dialect) insert(in *Insert, rows int) string {
	var b strings.Builder
	columns := d.quote(in.Columns...)
	fmt.Fprintf(&b, "INSERT INTO %s (%s) VALUES ", strings.Join(d.quote(strings.Split(in.Table, ".")...), "."), strings.Join(columns, ", "))
	n := 0
	for row := range rows {
		if row > 0 {
			b.WriteString(", ")
		}
		b.WriteByte('(')
		for i := range columns {
			if i > 0 {
				b.WriteString(", ")
			}
			if n++; d.mysql {
				b.WriteByte('?')
			} else {
				fmt.Fprintf(&b, "$%d", n)
			}
		}
		b.WriteByte(')')
	}
	if len(in.Key) == 0 {
		return b.String()
	}
	var sets []string
	for i, column := range in.Columns {
		switch {
		case slices.Contains(in.Key, column):
		case d.mysql:
			sets = append(sets, columns[i]+" = VALUES("+columns[i]+")")
		default:
			sets = append(sets, columns[i]+" = excluded."+columns[i])
		}
	}
	keys := d.quote(in.Key...)
	switch {
	case d.mysql && len(sets) == 0:
		b.WriteString(" ON DUPLICATE KEY UPDATE " + keys[0] + " = " + keys[0])
	case d.mysql:
		b.WriteString(" ON DUPLICATE KEY UPDATE " + strings.Join(sets, ", "))
	case len(sets) == 0:
		b.WriteString(" ON CONFLICT (" + strings.Join(keys, ", ") + ") DO NOTHING")
	default:
		b.WriteString(" ON CONFLICT (" + strings.Join(keys, ", ") + ") DO UPDATE SET " + strings.Join(sets, ", "))
	}
	return b.String()
}
