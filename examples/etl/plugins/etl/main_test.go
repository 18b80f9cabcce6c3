//go:build !wasip1

package main

import (
	"database/sql"
	"fmt"
	"net/http"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	_ "modernc.org/sqlite"

	"github.com/flowhost/flowhost/sdk/sdktest"
)

func TestExtractReadsAllPages(t *testing.T) {
	shop := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch after := r.URL.Query().Get("after"); after {
		case "":
			fmt.Fprint(w, `{"orders":[{"id":"a"},{"id":"b"}],"next":"b"}`)
		case "b":
			fmt.Fprint(w, `{"orders":[{"id":"c"}]}`)
		default:
			http.Error(w, "unexpected "+after, http.StatusBadRequest)
		}
	})
	outside := &sdktest.Outside{HTTP: map[string]http.Handler{"shop": shop}}
	got := sdktest.Call(t.Context(), extract, struct{}{}, sdktest.Options{Outside: outside})
	if got.Failure != nil || len(got.Value) != 3 || got.Value[2].ID != "c" {
		t.Errorf("%+v %v", got.Value, got.Failure)
	}
}

func TestExtractIsRetriedWhenTheShopIsBusy(t *testing.T) {
	shop := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Retry-After", "2")
		http.Error(w, "later", http.StatusTooManyRequests)
	})
	outside := &sdktest.Outside{HTTP: map[string]http.Handler{"shop": shop}}
	got := sdktest.Call(t.Context(), extract, struct{}{}, sdktest.Options{Outside: outside})
	if f := got.Failure; f == nil || f.Code != "http_429" || !f.Retryable || f.RetryAfter.Seconds() != 2 {
		t.Errorf("%+v", f)
	}
}

func TestLoadReplacesOrders(t *testing.T) {
	db, err := sql.Open("sqlite", filepath.Join(t.TempDir(), "warehouse.db"))
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	outside := &sdktest.Outside{SQL: map[string]*sql.DB{"warehouse": db}}
	orders := []Order{
		{ID: "a", Placed: "2026-03-01T10:00:00Z", Lines: []Line{{"x", 2, 500}, {"y", 1, 250}}},
		{ID: "b", Placed: "2026-03-01T11:00:00Z", State: "canceled"},
	}
	rows := sdktest.Call(t.Context(), transform, orders, sdktest.Options{})
	for range 2 { // a second time changes nothing
		got := sdktest.Call(t.Context(), load, rows.Value, sdktest.Options{Outside: outside})
		if diff := cmp.Diff(Loaded{Orders: 1, Cents: 1250}, got.Value); diff != "" || got.Failure != nil {
			t.Error(diff, got.Failure)
		}
	}
	var n, cents int
	if err := db.QueryRow("SELECT count(*), sum(cents) FROM orders").Scan(&n, &cents); err != nil || n != 1 || cents != 1250 {
		t.Errorf("%d orders, %d cents, %v", n, cents, err)
	}
}
