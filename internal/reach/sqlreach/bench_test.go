package sqlreach_test

import (
	"context"
	"database/sql"
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"github.com/flowhost/flowhost/run/access"
)

// BenchmarkSQLite is the cost of a query beside the same one by database/sql.
func BenchmarkSQLite(b *testing.B) {
	r := sqliteRig(b)
	db, err := sql.Open("sqlite", filepath.Join(r.conn.Folder, "native.db"))
	if err != nil {
		b.Fatal(err)
	}
	defer db.Close()
	benchmark(b, db, r, "WITH RECURSIVE s(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM s WHERE n < %d) SELECT n, 'text of row', n * 1.5 FROM s")
}

// benchmark compares: natively, by one attempt with all queries, and by an attempt for
// each. Operations have a deadline, as those of attempts do: the server is given the time
// that is left whenever an attempt gets a connection.
func benchmark(b *testing.B, db *sql.DB, r *rig, query string) {
	ctx, cancel := context.WithTimeout(b.Context(), time.Hour)
	defer cancel()
	for _, rows := range []int{1, 1000} {
		text := fmt.Sprintf(query, rows)
		b.Run(fmt.Sprintf("rows=%d/native", rows), func(b *testing.B) {
			for b.Loop() {
				native(b, db, text, rows)
			}
		})
		for _, mode := range []access.Mode{access.ReadWrite, access.ReadOnly} {
			one := r.with(mode)
			b.Run(fmt.Sprintf("rows=%d/%s", rows, mode), func(b *testing.B) {
				a := one.attempt()
				a.t = b
				for b.Loop() {
					if f := a.do(ctx, access.KindSQLQuery, object{"sql": text}).Fault; f != nil {
						b.Fatal(f)
					}
				}
				a.Close()
			})
			b.Run(fmt.Sprintf("rows=%d/%s/attempts", rows, mode), func(b *testing.B) {
				for b.Loop() {
					a := one.attempt()
					if f := a.do(ctx, access.KindSQLQuery, object{"sql": text}).Fault; f != nil {
						b.Fatal(f)
					}
					a.Close()
				}
			})
		}
	}
}

func native(b *testing.B, db *sql.DB, text string, want int) {
	rows, err := db.QueryContext(b.Context(), text)
	if err != nil {
		b.Fatal(err)
	}
	n := 0
	for ; rows.Next(); n++ {
		var number int64
		var name string
		var value float64
		if err := rows.Scan(&number, &name, &value); err != nil {
			b.Fatal(err)
		}
	}
	if rows.Err() != nil || n != want {
		b.Fatal(rows.Err(), n)
	}
}
