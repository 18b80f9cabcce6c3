package main

import (
	"testing"

	"github.com/flowhost/flowhost/run"
)

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
