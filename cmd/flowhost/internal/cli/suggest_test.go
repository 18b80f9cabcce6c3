package cli

import (
	"strings"
	"testing"
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
		{"xyz", []string{"orders", "hello"}, "; known: orders, hello"},
		{"xyz", nil, ""},
		{"paid", []string{"price", "wait.paid"}, `; did you mean "wait.paid"?`},
		{"some", strings.Fields(strings.Repeat("item ", listed+2)), "; known: " + strings.Repeat("item, ", listed-1) + "item and 2 more"},
	}
	for _, test := range tests {
		if got := Suggest(test.given, test.names); got != test.want {
			t.Errorf("%q among %q: %q, want %q", test.given, test.names, got, test.want)
		}
	}
}
