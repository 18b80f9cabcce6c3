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

// A terminal that is too narrow does not show columns that can be missed, and first of all
// those without content. Text in the last column may continue in the next line.
func TestListsOnNarrowTerminals(t *testing.T) {
	t.Parallel()
	rows := [][]string{{"01M82VRRM5YK", "failed", "", "2026-01-02T03:04:05Z", "it has a long reason that nobody may cut"}, {"01M82VRRM5YL", "ok", "", "", ""}}
	for name, c := range map[string]struct {
		interactive bool
		width       int
		want        string
	}{
		"a file":            {false, 20, "RUN           STATE   FROM  AT                    NOTE"},
		"a wide terminal":   {true, 70, "RUN           STATE   FROM  AT                    NOTE"},
		"without the empty": {true, 69, "RUN           STATE   AT                    NOTE"},
		"a narrow one":      {true, 63, "RUN           STATE   NOTE"},
		"too narrow":        {true, 10, "RUN           STATE   NOTE"},
	} {
		var out strings.Builder
		columns := &Columns{Names: []string{"RUN", "STATE", "FROM", "AT", "NOTE"}, States: 1, Narrow: []int{3, 2}}
		terminal := &Terminal{Writer: &out, Interactive: c.interactive, Width: c.width}
		for _, part := range [][][]string{nil, rows[:1], rows[1:]} {
			if err := List(terminal, part, false, columns, func(row []string) []string { return row }); err != nil {
				t.Fatal(err)
			}
		}
		lines := strings.Split(out.String(), "\n")
		if len(lines) != 4 || lines[0] != c.want || !strings.HasSuffix(lines[1], rows[0][4]) || !strings.HasPrefix(lines[2], "01M82VRRM5YL  ok") {
			t.Errorf("%s: %q, want %q", name, lines, c.want)
		}
	}
}
