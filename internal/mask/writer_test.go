package mask_test

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"
)

func TestWriterPassesLines(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	w := masker("correct-horse-battery", "top-secret\nin two lines").Writer(&out)
	for _, step := range []struct{ write, want string }{
		{"a line\n", "a line\n"},
		{"no line", "a line\nno line"},
		{" correct-horse", "a line\nno line "},
		{"-radish\n", "a line\nno line correct-horse-radish\n"},
		{"correct-", "a line\nno line correct-horse-radish\n"},
		{"horse-battery\n", "a line\nno line correct-horse-radish\n***\n"},
		{"top-secret\n", "a line\nno line correct-horse-radish\n***\n"}, // which may continue
		{"in one\n", "a line\nno line correct-horse-radish\n***\n***\nin one\n"},
	} {
		if n, err := io.WriteString(w, step.write); n != len(step.write) || err != nil {
			t.Fatal(n, err)
		}
		if got := out.String(); got != step.want {
			t.Fatalf("after %q: %q, want %q", step.write, got, step.want)
		}
	}
	if _, err := io.WriteString(w, "correct-"); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := w.Close(); err != nil || !strings.HasSuffix(out.String(), "\ncorrect-") {
			t.Errorf("closed: %q, %v", out.String(), err)
		}
	}
	if n, err := io.WriteString(w, "x"); n != 0 || err == nil {
		t.Errorf("written after Close: %d, %v", n, err)
	}
}

// TestWriterHoldsLittle writes a value without end that overlaps itself: all of it is
// masked, and no more is kept than a pattern.
func TestWriterHoldsLittle(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	w := masker("abababab", "the-other").Writer(&out)
	for range 1000 {
		if _, err := io.WriteString(w, "abababababab"); err != nil {
			t.Fatal(err)
		}
	}
	if out.String() != "***" {
		t.Errorf("%q", out.String())
	}
	if _, err := io.WriteString(w, " the-other"); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil || out.String() != "*** ***" {
		t.Errorf("%q, %v", out.String(), err)
	}
}

func TestWriterLearnsValues(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	m := masker("first-value-of-all", "value-of-all")
	w := m.Writer(&out)
	for _, text := range []string{"second-", "first-value-of-al", "l first-value"} {
		if _, err := io.WriteString(w, text); err != nil {
			t.Fatal(err)
		}
		m.Add("second-value " + text)
		m.Add("value-two")
	}
	if _, err := io.WriteString(w, "-two"); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil || out.String() != "second-*** first-***" {
		t.Errorf("%q, %v", out.String(), err)
	}
}

type broken struct{ err error }

func (b broken) Write([]byte) (int, error) { return 0, b.err }

func TestWriterReportsErrors(t *testing.T) {
	t.Parallel()
	full := errors.New("no space")
	w := masker("correct-horse").Writer(broken{full})
	for range 2 {
		if n, err := io.WriteString(w, "text"); n != 0 || !errors.Is(err, full) {
			t.Errorf("%d, %v", n, err)
		}
	}
	if err := w.Close(); !errors.Is(err, full) {
		t.Errorf("close: %v", err)
	}
}
