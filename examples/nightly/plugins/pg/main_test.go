package main

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/flowhost/flowhost/sdk/sdktest"
)

func TestListTables(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		ask  question
		want []string
		code string
	}{
		"all":     {question{Host: "pg.eu.example"}, []string{"customers", "orders"}, ""},
		"changed": {question{Host: "pg.eu.example", Since: time.Now().Add(-2 * time.Hour)}, []string{"orders"}, ""},
		"none":    {question{Host: "pg.us.example", Since: time.Now()}, []string{}, ""},
		"unknown": {question{Host: "nowhere"}, nil, "host"},
	} {
		got := sdktest.Call(t.Context(), listTables, c.ask, sdktest.Options{})
		if diff := cmp.Diff(c.want, got.Value); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
		if c.code != "" && (got.Failure == nil || got.Failure.Code != c.code) {
			t.Errorf("%s: %+v", name, got.Failure)
		}
	}
}
