package render

import (
	"strings"
	"testing"
)

func TestTable(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	(&Terminal{Writer: &out}).Table([][]string{{"RUN", "STATE", "ERROR"}, {"é", "failed", ""}, {"long", "ok", "why"}}, 1)
	want := "RUN   STATE   ERROR\né     failed\nlong  ok      why\n"
	if out.String() != want {
		t.Errorf("got\n%swant\n%s", out.String(), want)
	}
	out.Reset()
	(&Terminal{Writer: &out, color: true}).Table([][]string{{"a", "failed"}, {"b", "succeeded"}}, 1)
	if want := "a  \x1b[31mfailed\x1b[0m\nb  \x1b[32msucceeded\x1b[0m\n"; !strings.Contains(out.String(), "\x1b[31mfailed\x1b[0m") || strings.ReplaceAll(out.String(), "   \n", "\n") != want {
		t.Errorf("got %q, want %q", out.String(), want)
	}
}
