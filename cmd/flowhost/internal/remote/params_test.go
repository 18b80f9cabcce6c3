package remote

import "testing"

func TestParamValue(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ declared, text, want string }{
		{"string", "5", `"5"`},
		{"", "<é>", `"<é>"`},
		{"any", "5", `"5"`},
		{"number", "5", "5"},
		{"number", "many", `"many"`},
		{"list(string)", `["a"]`, `["a"]`},
		{"bool", "true", "true"},
	} {
		got, err := paramValue(test.declared, test.text)
		if err != nil || string(got) != test.want {
			t.Errorf("%s %q: %s, %v, want %s", test.declared, test.text, got, err, test.want)
		}
	}
}
