//go:build !wasip1

package sdktest_test

import (
	"bytes"
	"database/sql"
	"errors"
	"math"
	"path/filepath"
	"testing"
	"time"

	_ "modernc.org/sqlite"

	"github.com/flowhost/flowhost/sdk"
	"github.com/flowhost/flowhost/sdk/sdksql"
	"github.com/flowhost/flowhost/sdk/sdktest"
)

func databaseOf(t *testing.T) *sdktest.Outside {
	t.Helper()
	db, err := sql.Open("sqlite", filepath.Join(t.TempDir(), "test.db"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	return &sdktest.Outside{SQL: map[string]*sql.DB{"warehouse": db}}
}

// Values come back as they were, in their types.
func TestValuesOfDatabases(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 3, 29, 1, 30, 0, 123_456_000, time.UTC)
	result := calls(t, databaseOf(t), func(ctx sdk.Context) error {
		db := sdksql.Open(ctx, "warehouse")
		if _, err := db.Exec(`CREATE TABLE v (n BIGINT, f DOUBLE, s TEXT, b BLOB, at TIMESTAMP, none TEXT)`); err != nil {
			return err
		}
		for _, n := range []int64{0, 1 << 53, math.MaxInt64, math.MinInt64} {
			done, err := db.Exec(`INSERT INTO v VALUES (?, ?, ?, ?, ?, ?)`, n, 1.5, "é\"\n", []byte{0, 255}, at, nil)
			if err != nil {
				return err
			}
			if affected, err := done.RowsAffected(); affected != 1 || err != nil {
				t.Errorf("%d rows, %v", affected, err)
			}
		}
		rows, err := db.Query(`SELECT n, f, s, b, at, none FROM v ORDER BY rowid`)
		if err != nil {
			return err
		}
		defer rows.Close()
		for _, want := range []int64{0, 1 << 53, math.MaxInt64, math.MinInt64} {
			var n int64
			var f float64
			var s string
			var b []byte
			var when time.Time
			var none sql.NullString
			if !rows.Next() {
				t.Fatal(rows.Err())
			}
			if err := rows.Scan(&n, &f, &s, &b, &when, &none); err != nil {
				return err
			}
			if n != want || f != 1.5 || s != "é\"\n" || !bytes.Equal(b, []byte{0, 255}) || !when.Equal(at) || none.Valid {
				t.Errorf("%d %g %q %x %v %v", n, f, s, b, when, none)
			}
		}
		if rows.Next() {
			t.Error("there are more rows")
		}
		return rows.Err()
	})
	if result.Failure != nil {
		t.Error(result.Failure)
	}
}

func TestTransactions(t *testing.T) {
	t.Parallel()
	outside := databaseOf(t)
	result := calls(t, outside, func(ctx sdk.Context) error {
		db := sdksql.Open(ctx, "warehouse")
		if _, err := db.Exec(`CREATE TABLE v (n INTEGER)`); err != nil {
			return err
		}
		tx, err := db.Begin()
		if err != nil {
			return err
		}
		if _, err := tx.Exec(`INSERT INTO v VALUES (1)`); err != nil {
			return err
		}
		if _, err := db.Exec(`INSERT INTO v VALUES (2)`); err == nil {
			t.Error("a statement beside the transaction became a part of it")
		}
		if err := tx.Rollback(); err != nil {
			return err
		}
		if tx, err = db.Begin(); err != nil {
			return err
		}
		if _, err := tx.Exec(`INSERT INTO v VALUES (3)`); err != nil {
			return err
		}
		if err := tx.Commit(); err != nil {
			return err
		}
		var n int
		if err := db.QueryRow(`SELECT sum(n) FROM v`).Scan(&n); err != nil || n != 3 {
			t.Errorf("%d, %v", n, err)
		}
		if _, err = db.Exec(`INSERT INTO nowhere VALUES (1)`); err == nil {
			t.Error("a table that does not exist took a row")
		}
		fault := (*sdk.OperationError)(nil)
		if !errors.As(err, &fault) || fault.Code != "refused" {
			t.Errorf("%v", err)
		}
		_, err = db.Begin() // left open
		return err
	})
	if result.Failure != nil {
		t.Error(result.Failure)
	}
	if _, err := outside.SQL["warehouse"].Exec(`INSERT INTO v VALUES (4)`); err != nil {
		t.Errorf("what the call has left open holds the database: %v", err)
	}
}
