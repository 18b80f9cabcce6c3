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

func TestTemplates(t *testing.T) {
	t.Parallel()
	want(t, "template.main", `{"template":"{{range .items}}{{.name | upper}};{{end}}","data":{"items":[{"name":"a"},{"name":"b"}]}}`, `{"text":"A;B;"}`)
	want(t, "template.main", `{"template":"<b>{{.x}}</b>","data":{"x":"<i>"},"html":true}`, `{"text":"<b>&lt;i&gt;</b>"}`)
	want(t, "template.main", `{"template":"{{.nobody}}","data":{}}`, `template`)
	want(t, "template.main", `{"template":"{{"}`, `syntax`)
}
