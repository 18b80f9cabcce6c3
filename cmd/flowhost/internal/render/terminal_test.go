package render

import (
	"bytes"
	"os"
	"testing"
)

func TestPaint(t *testing.T) {
	t.Parallel()
	colored, plain := &Terminal{color: true}, &Terminal{}
	if got := colored.Paint(Red, "failed"); got != "\x1b[31mfailed\x1b[0m" {
		t.Errorf("with colours: %q", got)
	}
	if got := plain.Paint(Red, "failed"); got != "failed" {
		t.Errorf("without: %q", got)
	}
	if got := colored.Paint(Red, ""); got != "" {
		t.Errorf("nothing is painted as %q", got)
	}
}

func TestStreamsThatAreNoTerminal(t *testing.T) {
	t.Parallel()
	file, err := os.Create(t.TempDir() + "/out")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	environ := func(string) string { return "" }
	for _, out := range []*Terminal{NewTerminal(file, environ), NewTerminal(&bytes.Buffer{}, environ)} {
		if out.Interactive || out.color || out.Width != DefaultWidth {
			t.Errorf("taken for a terminal: %+v", out)
		}
	}
}

// A person gets JSON that can be read, a program one line of it.
func TestPrintJSON(t *testing.T) {
	t.Parallel()
	for interactive, want := range map[bool]string{
		false: `{"a":"<b>"}` + "\n",
		true:  "{\n  \"a\": \"<b>\"\n}\n",
	} {
		var out bytes.Buffer
		terminal := &Terminal{Writer: &out, Interactive: interactive}
		if err := terminal.JSON(map[string]string{"a": "<b>"}); err != nil || out.String() != want {
			t.Errorf("interactive %v: %q, %v, want %q", interactive, out.String(), err, want)
		}
	}
}

func TestPrintable(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"plain ü 世\t":     "plain ü 世\t",
		"\x1b[2J\r\x00\n": `\x1b[2J\x0d\x00\x0a`,
		"\u009b1m\x7f":    `\x9b1m\x7f`,
	} {
		if got := Printable(text); got != want {
			t.Errorf("%q is shown as %q, want %q", text, got, want)
		}
	}
}
