//go:build !wasip1

package main

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/flowhost/flowhost/sdk/sdktest"
)

// want calls a function with input as JSON and compares its output as JSON, or the code of its
// failure.
func want(t *testing.T, function, input, output string) {
	t.Helper()
	r := sdktest.Invoke(t.Context(), function, json.RawMessage(input), sdktest.Options{})
	got := string(r.Output)
	if r.Failure != nil {
		got = r.Failure.Code + ": " + r.Failure.Message
	}
	if got != output && !strings.HasPrefix(got, output+":") {
		t.Errorf("%s %s:\n got %s\nwant %s", function, input, got, output)
	}
}

func TestPrograms(t *testing.T) {
	t.Parallel()
	want(t, "jq.main", `{"query":".a + $b","data":{"a":1},"vars":{"b":2}}`, `3`)
	want(t, "jq.main", `{"query":"empty"}`, `null`)
	want(t, "jq.main", `{"query":"12345678901234567890 * 1000"}`, `12345678901234567890000`)
	want(t, "jq.main", `{"query":"env | length"}`, `0`)
	want(t, "jq.main", `{"query":".a"  ,"data":[1]}`, `jq`)
	want(t, "jq.main", `{"query":".["}`, `syntax`)
	want(t, "jq.all", `{"query":".[]","data":[1,"a",null]}`, `[1,"a",null]`)
}
