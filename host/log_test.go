package host

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/flowhost/flowhost/sdk/abi"
)

func TestLogCutsLongLines(t *testing.T) {
	t.Parallel()
	b := logBuffer{limit: 400} // lines of up to 68 bytes
	b.add(abi.LevelInfo, strings.Repeat("ä", 200), nil)
	b.add(abi.LevelInfo, "bad \xff byte", nil)
	lines := b.result().Lines
	if got := lines[0].Message; len(got) > 68 || !strings.HasSuffix(got, "ä…") || !utf8.ValidString(got) {
		t.Errorf("%d bytes: %q", len(got), got)
	}
	if got := lines[1].Message; got != "bad \uFFFD byte" {
		t.Errorf("%q", got)
	}
}

func TestLogStaysWithinItsLimit(t *testing.T) {
	t.Parallel()
	for _, limit := range []int64{0, 1, 31, 32, 100, 1000, 64 << 10} {
		b := logBuffer{limit: limit}
		const lines = 5000
		for i := range lines {
			b.add(abi.LevelInfo, strings.Repeat("x", i%300), json.RawMessage(`{"a":1}`))
		}
		log := b.result()
		var cost int64
		for _, line := range log.Lines {
			cost += lineCost(line)
		}
		if cost > limit || len(log.Lines)+log.Dropped != lines {
			t.Errorf("limit %d: %d bytes, %d lines and %d dropped", limit, cost, len(log.Lines), log.Dropped)
		}
	}
}

func TestLineWriter(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name   string
		writes []string
		want   []string
	}{
		{"lines", []string{"a\nb\n"}, []string{"a", "b"}},
		{"no end", []string{"a\nb"}, []string{"a", "b"}},
		{"pieces", []string{"he", "llo\nwo", "rld", "\n"}, []string{"hello", "world"}},
		{"blank", []string{"\n\na\n"}, []string{"", "", "a"}},
		{"carriage returns", []string{"a\r\nb\r\n"}, []string{"a", "b"}},
		{"long", []string{"0123456789abcdefghijkl\nx"}, []string{"0123456789", "abcdefghij", "kl", "x"}},
		{"long in pieces", []string{"01234567", "89abc\n"}, []string{"0123456789", "abc"}},
	}
	for _, tt := range tests {
		var got []string
		w := &lineWriter{max: 10, sink: (*collected)(&got)}
		for _, text := range tt.writes {
			if n, err := w.Write([]byte(text)); n != len(text) || err != nil {
				t.Errorf("%s: %d, %v", tt.name, n, err)
			}
		}
		w.close()
		if strings.Join(got, "|") != strings.Join(tt.want, "|") {
			t.Errorf("%s: %q, want %q", tt.name, got, tt.want)
		}
	}
}

func TestLastWords(t *testing.T) {
	t.Parallel()
	tests := []struct{ name, stderr, crash, line string }{
		{"none", "", "", ""},
		{"an ordinary program", "reading\ncannot open\n\n", "", "cannot open"},
		{"Go", "panic: boom\n\ngoroutine 1 [running]:\nmain.main()", "panic: boom", "main.main()"},
		{"Go's runtime", "fatal error: out of memory\nruntime stack:", "fatal error: out of memory", "runtime stack:"},
		{"Rust before 1.73", "thread 'main' panicked at 'boom', src/lib.rs:3:5\nnote: run", "thread 'main' panicked at 'boom', src/lib.rs:3:5", "note: run"},
		{"Rust", "thread 'main' panicked at src/lib.rs:3:5:\nboom\nnote: run", "thread 'main' panicked at src/lib.rs:3:5: boom", "note: run"},
	}
	for _, tt := range tests {
		var last lastWords
		for line := range strings.SplitSeq(tt.stderr, "\n") {
			last.hear(line)
		}
		if last.crash != tt.crash || last.line != tt.line {
			t.Errorf("%s: %q, %q", tt.name, last.crash, last.line)
		}
	}
}

// collected is the lines of a lineWriter.
type collected []string

func (c *collected) line(text string) { *c = append(*c, text) }
