package main

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/flowhost/flowhost/run"
)

func TestSuggest(t *testing.T) {
	t.Parallel()
	tests := []struct {
		given string
		names []string
		want  string
	}{
		{"odrers", []string{"orders", "hello"}, `; did you mean "orders"?`},
		{"invoice", []string{"billing/invoice", "hello"}, `; did you mean "billing/invoice"?`},
		{"xyz", []string{"orders", "hello"}, "; there is orders, hello"},
		{"xyz", nil, ""},
		{"paid", []string{"price", "wait.paid"}, `; did you mean "wait.paid"?`},
		{"some", strings.Fields(strings.Repeat("item ", listed+2)), "; there is " + strings.Repeat("item, ", listed-1) + "item and 2 more"},
	}
	for _, test := range tests {
		if got := suggest(test.given, test.names); got != test.want {
			t.Errorf("%q among %q: %q, want %q", test.given, test.names, got, test.want)
		}
	}
}

func TestSize(t *testing.T) {
	t.Parallel()
	for bytes, want := range map[int64]string{7: "7 bytes", 1536: "1.5 KiB", 3 << 20: "3.0 MiB"} {
		if got := size(bytes); got != want {
			t.Errorf("%d: %q, want %q", bytes, got, want)
		}
	}
}

func TestSemanticVersion(t *testing.T) {
	t.Parallel()
	for version, want := range map[string]string{
		"v1.2.3": "1.2.3", "v0.1.0-3-gabc1234-dirty": "0.1.0-3-gabc1234-dirty",
		"f7fd941-dirty": "0.0.0", "(devel)": "0.0.0", "": "0.0.0", "v01.2.3": "0.0.0",
	} {
		if got := (build{Version: version}).semantic(); got != want {
			t.Errorf("%q: %q, want %q", version, got, want)
		}
	}
}

func TestSplitCall(t *testing.T) {
	t.Parallel()
	signature := run.Signature{Functions: []run.FunctionSignature{{Name: "greet"}, {Name: "true"}}}
	tests := []struct {
		args            []string
		function, input string
	}{
		{nil, "", "null"},
		{[]string{"greet"}, "greet", "null"},
		{[]string{"grete"}, "grete", "null"},
		{[]string{"true"}, "true", "null"},
		{[]string{"false"}, "", "false"},
		{[]string{"-"}, "", "-"},
		{[]string{"@in.json"}, "", "@in.json"},
		{[]string{"greet", "{}"}, "greet", "{}"},
	}
	for _, test := range tests {
		if function, input := splitCall(signature, test.args); function != test.function || input != test.input {
			t.Errorf("%q: function %q, input %q, want %q, %q", test.args, function, input, test.function, test.input)
		}
	}
}

func TestGuestFields(t *testing.T) {
	t.Parallel()
	for object, want := range map[string]string{
		`{"b":2,"a":"x","c":{"d":[1]}}`: `guest=[a=x b=2 c={"d":[1]}]`,
		``:                              `=<nil>`,
		`{`:                             `=<nil>`,
	} {
		if got := guestFields(json.RawMessage(object)).String(); got != want {
			t.Errorf("%s: %s, want %s", object, got, want)
		}
	}
}

func TestCheckJSONNamesTheLine(t *testing.T) {
	t.Parallel()
	err := checkJSON([]byte("{\n  \"a\": 1,\n  b\n}"))
	if err == nil || err.Error() != "line 3: invalid character 'b' looking for beginning of object key string" {
		t.Errorf("got %v", err)
	}
}

func TestCut(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		text  string
		width int
		want  string
	}{
		{"short", 5, "short"},
		{strings.Repeat("é", 20), 20, strings.Repeat("é", 20)},
		{strings.Repeat("x", 2048), 20, "xxxxxxxxx… (2.0 KiB)"},
		{strings.Repeat("é", 30), 20, "éééééééé… (60 bytes)"},
		{strings.Repeat("x", 100), 3, "… (100 bytes)"},
	} {
		if got := cut(test.text, test.width); got != test.want {
			t.Errorf("%.20q in %d: %q, want %q", test.text, test.width, got, test.want)
		}
	}
}
