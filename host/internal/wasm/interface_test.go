package wasm

import "testing"

func TestTypesAreWritten(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ params, results, want string }{
		{"", "", "() -> ()"},
		{"", "\x7f", "() -> i32"},
		{"\x7f\x7e", "\x7d", "(i32, i64) -> f32"},
		{"\x7c\x7b", "\x70\x6f", "(f64, v128) -> (funcref, externref)"},
	} {
		if got := typeText([]byte(c.params), []byte(c.results)); got != c.want {
			t.Errorf("%q, want %q", got, c.want)
		}
	}
}
