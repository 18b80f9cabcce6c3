package sdktest

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/flowhost/flowhost/sdk/abi"
	"github.com/flowhost/flowhost/sdk/internal/guest"
)

// querier is a database or a transaction.
type querier interface {
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
	ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
}

// sql performs operations on a database of the test.
func (o *Outside) sql(ctx context.Context, kind string, head []byte) (guest.Reply, error) {
	var in struct {
		Connection, SQL string
		Args            []json.RawMessage
	}
	if err := decode(head, &in); err != nil {
		return guest.Reply{}, err
	}
	db := o.SQL[in.Connection]
	if db == nil {
		return guest.Reply{}, denied("connection %q is not granted", in.Connection)
	}
	if o.transactions == nil {
		o.transactions = map[string]*sql.Tx{}
	}
	tx := o.transactions[in.Connection]
	var on querier = db
	if tx != nil {
		on = tx
	}
	args, err := arguments(in.Args)
	if err != nil {
		return guest.Reply{}, err
	}
	switch kind {
	case "sql.query":
		return queryReply(ctx, on, in.SQL, args)
	case "sql.exec":
		result, err := on.ExecContext(ctx, in.SQL, args...)
		if err != nil {
			return guest.Reply{}, refused(err)
		}
		affected, _ := result.RowsAffected() // not of every driver, as is the next
		id, _ := result.LastInsertId()
		return replyOf(map[string]any{"rows_affected": affected, "last_insert_id": id}, nil)
	case "sql.begin":
		if tx != nil {
			return guest.Reply{}, &abi.Fault{Code: "invalid", Message: "a transaction is open"}
		}
		if tx, err = db.BeginTx(context.WithoutCancel(ctx), nil); err != nil {
			return guest.Reply{}, refused(err)
		}
		o.transactions[in.Connection] = tx
		return replyOf(map[string]any{}, nil)
	case "sql.commit", "sql.rollback":
		if tx == nil {
			return guest.Reply{}, &abi.Fault{Code: "invalid", Message: "no transaction is open"}
		}
		delete(o.transactions, in.Connection)
		end := tx.Commit
		if kind == "sql.rollback" {
			end = tx.Rollback
		}
		if err := end(); err != nil {
			return guest.Reply{}, refused(err)
		}
		return replyOf(map[string]any{}, nil)
	}
	return guest.Reply{}, denied("%s: sdktest gives all rows at once", kind)
}

// rollBack ends the transactions that a call has left open, as a host does.
func (o *Outside) rollBack() {
	if o == nil {
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, tx := range o.transactions {
		_ = tx.Rollback() // nobody asks any more
	}
	clear(o.transactions)
}

func refused(err error) error {
	return &abi.Fault{Code: "refused", Message: err.Error()}
}

func queryReply(ctx context.Context, on querier, query string, args []any) (guest.Reply, error) {
	rows, err := on.QueryContext(ctx, query, args...)
	if err != nil {
		return guest.Reply{}, refused(err)
	}
	defer rows.Close()
	types, err := rows.ColumnTypes()
	if err != nil {
		return guest.Reply{}, refused(err)
	}
	var columns []map[string]string
	for _, t := range types {
		columns = append(columns, map[string]string{"name": t.Name(), "type": strings.ToUpper(t.DatabaseTypeName())})
	}
	values, places := make([]any, len(types)), make([]any, len(types))
	for i := range values {
		places[i] = &values[i]
	}
	page, n := bytes.NewBufferString("["), 0
	for ; rows.Next(); n++ {
		if err := rows.Scan(places...); err != nil {
			return guest.Reply{}, refused(err)
		}
		row := make([]json.RawMessage, len(values))
		for i, value := range values {
			if row[i], err = wire(value); err != nil {
				return guest.Reply{}, err
			}
		}
		text, err := guest.Encode(row)
		if err != nil {
			return guest.Reply{}, err
		}
		if n > 0 {
			page.WriteByte(',')
		}
		page.Write(text)
	}
	if err := rows.Err(); err != nil {
		return guest.Reply{}, refused(err)
	}
	page.WriteByte(']')
	return replyOf(map[string]any{"columns": columns, "rows": n}, page.Bytes())
}

// wire is a value of a row as a host gives it.
func wire(value any) (json.RawMessage, error) {
	switch v := value.(type) {
	case []byte:
		return guest.Encode(map[string]string{"bytes": base64.StdEncoding.EncodeToString(v)})
	case time.Time:
		return guest.Encode(v.UTC().Format(time.RFC3339Nano))
	case int64:
		if v > 1<<53 || v < -1<<53 {
			return guest.Encode(map[string]string{"int": fmt.Sprint(v)})
		}
	case float64:
		text := fmt.Sprint(v)
		if !strings.ContainsAny(text, ".eIN") {
			text += ".0"
		}
		if strings.ContainsAny(text, "IN") {
			return guest.Encode(map[string]string{"float": strings.ReplaceAll(strings.TrimPrefix(text, "+"), "Inf", "Infinity")})
		}
		return json.RawMessage(text), nil
	}
	return guest.Encode(value)
}

// arguments are the values of placeholders.
func arguments(list []json.RawMessage) ([]any, error) {
	var out []any
	for _, text := range list {
		d := json.NewDecoder(bytes.NewReader(text))
		d.UseNumber()
		var value any
		if err := d.Decode(&value); err != nil {
			return nil, &abi.Fault{Code: "invalid", Message: err.Error()}
		}
		value, err := argument(value)
		if err != nil {
			return nil, &abi.Fault{Code: "invalid", Message: err.Error()}
		}
		out = append(out, value)
	}
	return out, nil
}

func argument(value any) (any, error) {
	switch v := value.(type) {
	case json.Number:
		if n, err := v.Int64(); err == nil {
			return n, nil
		}
		return v.Float64()
	case map[string]any:
		for kind, text := range v {
			text, _ := text.(string)
			switch kind {
			case "int":
				return json.Number(text).Int64()
			case "bytes":
				return base64.StdEncoding.DecodeString(text)
			case "time":
				return time.Parse(time.RFC3339Nano, text)
			}
			return text, nil
		}
	}
	return value, nil
}
