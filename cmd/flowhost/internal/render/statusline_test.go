package render

import (
	"bytes"
	"fmt"
	"testing"
)

// A person sees one line that changes, a program a line for each change.
func TestStatusLine(t *testing.T) {
	t.Parallel()
	for interactive, want := range map[bool]string{
		false: "1 of 3\n2 of 3\nwaiting\n2 of 3 and more than fits\n",
		true:  "1 of 3\r\x1b[K2 of 3\r\x1b[Kwaiting\n2 of 3\r\x1b[K2 of 3 and…\n",
	} {
		var out bytes.Buffer
		line := NewStatusLine(&Terminal{Writer: &out, Interactive: interactive, Width: 12})
		line.Show("1 of 3")
		line.Show("1 of 3")
		line.Show("2 of 3")
		fmt.Fprintln(line, "waiting")
		line.Show("2 of 3")
		line.Show("2 of 3 and more than fits")
		line.End()
		line.End()
		if got := out.String(); got != want {
			t.Errorf("interactive %t: %q, want %q", interactive, got, want)
		}
	}
}
