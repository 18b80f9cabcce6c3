package wasm

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/tetratelabs/wazero"
)

// countdown is a loop of so many more bytes that counts local 0 down. It is 5
// units, 11 bytes with the br_if.
func countdown(more int) string {
	return "\x03\x40" + strings.Repeat("\x01", more) + "\x20\x00\x41\x01\x6b\x22\x00\x0d\x00\x0b"
}

func TestUnits(t *testing.T) {
	t.Parallel()
	const i32 = "\x01\x7f"
	long := strings.Repeat("\x41\x00\x1a", paidInAll/2+1)                         // 2 units more than an earlier stretch would pay
	three := function(i32, i32, "\x00", "\x20\x00\x41\x02\x6a")                   // 3 units
	large := function("\x00", "\x00", "\x00", strings.Repeat("\x41\x00\x1a", 30)) // 60 units
	table := map[byte][]byte{
		sectionTable:   []byte("\x01\x70\x00\x04"),
		sectionElement: []byte("\x01\x00\x41\x00\x0b\x01\x00"), // function 0
	}
	tests := []struct {
		name    string
		others  map[byte][]byte
		entries []entry
		arg     uint64 // of the last entry
		want    int64
	}{
		{"a small function that calls nothing", nil, []entry{three}, 1, 0},
		{"calls pay for those", nil, []entry{three, function(i32, i32, "\x00", "\x20\x00\x10\x00\x10\x00")}, 1, 15},
		{"a large one pays itself", nil, []entry{function(i32, "\x00", "\x00", strings.Repeat("\x20\x00\x1a", 33))}, 1, 66},
		{"calls do not pay for large ones", nil, []entry{
			function(i32, "\x00", "\x00", strings.Repeat("\x20\x00\x1a", 33)),
			function(i32, "\x00", "\x00", "\x20\x00\x10\x00\x20\x00\x10\x00"),
		}, 1, 142},
		{"indirect calls", table, []entry{three, function(i32, i32, "\x00", "\x20\x00\x41\x00\x11\x00\x00")}, 1, 13},
		{"four copies", nil, []entry{function(i32, "\x00", "\x00", countdown(0))}, 9, 72},
		{"a long loop", nil, []entry{function(i32, "\x00", "\x00", countdown(60))}, 9, 54},
		{"a loop without an end", nil, []entry{function(i32, "\x00", "\x00", "\x03\x40\x0b")}, 1, 4},
		{"loops in loops", nil, []entry{function("\x02\x7f\x7f", "\x00", "\x00",
			"\x03\x40\x41\x04\x21\x01"+ // 2 units and the loop
				"\x03\x40\x20\x01\x41\x01\x6b\x22\x01\x0d\x00\x0b"+ // 4 times, one check
				"\x20\x00\x41\x01\x6b\x22\x00\x0d\x00\x0b")}, 3, 96},
		{"a loop with parameters", nil, []entry{function(i32, i32, "\x00",
			"\x20\x00\x03\x00\x41\x01\x6b\x22\x00\x20\x00\x0d\x00\x0b")}, 5, 30},
		{"what is not run", nil, []entry{function(i32, "\x00", "\x00", "\x20\x00\x04\x40"+long+"\x0b")}, 0, 3},
		{"what is run", nil, []entry{function(i32, "\x00", "\x00", "\x20\x00\x04\x40"+long+"\x0b")}, 1, 261},
		{"what comes after a branch", nil, []entry{function(i32, "\x00", "\x00",
			"\x02\x40\x02\x40\x20\x00\x0d\x00\x20\x00\x45\x0d\x01\x0b"+long+"\x0b")}, 0, 7},
		{"what a branch leads to", nil, []entry{function(i32, "\x00", "\x00",
			"\x02\x40\x02\x40\x20\x00\x0d\x00\x20\x00\x45\x0d\x01\x0b"+long+"\x0b")}, 1, 265},
		{"what is not run, of two", nil, []entry{function(i32, "\x00", "\x00",
			strings.Repeat("\x20\x00\x04\x40"+strings.Repeat("\x41\x00\x1a", 40)+"\x0b", 2))}, 0, 166},
		{"a small stretch after a large one", nil, []entry{function(i32, "\x00", "\x00",
			"\x02\x40\x02\x40\x20\x00\x45\x0d\x01\x0b"+long+
				"\x02\x40\x20\x00\x45\x0d\x01\x0b\x41\x00\x1a\x0b")}, 1, 268},
		{"the entry of a function that is a loop", nil, []entry{three, function(i32, "\x00", "\x00",
			"\x03\x40\x20\x00\x10\x00\x1a"+countdown(0)+"\x0b")}, 1, 33},
		{"the entry of a function that may leave before", nil, []entry{three, function(i32, "\x00", "\x00",
			"\x02\x40\x20\x00\x0d\x00\x03\x40\x20\x00\x10\x00\x1a\x0b\x0b")}, 1, 3},
		{"the entry of a function that calls before", nil, []entry{three, function(i32, "\x00", "\x00",
			"\x20\x00\x10\x00\x1a\x03\x40"+strings.Repeat("\x20\x00\x10\x00\x1a", 20)+"\x0b")}, 1, 189},
		{"the entry of a function whose loop is not reached", nil, []entry{
			function("\x00", "\x00", "\x00", "\x00"),
			function(i32, "\x00", "\x00", "\x10\x00\x03\x40"+strings.Repeat("\x20\x00\x1a", 20)+"\x0b")}, 1, 5},
		{"the entry of a function with a smaller loop", nil, []entry{three, function(i32, "\x00", "\x00",
			strings.Repeat("\x20\x00\x1a", 20)+countdown(60)+"\x20\x00\x10\x00\x1a")}, 9, 103},
		{"a stretch in four copies", nil, []entry{large, function(i32, "\x00", "\x00",
			"\x03\x40\x20\x00\x41\x01\x71\x04\x40\x10\x00\x10\x00\x10\x00\x0b\x20\x00\x41\x01\x6b\x22\x00\x0d\x00\x0b")},
			9, 2436},
		{"memory.fill", nil, []entry{function(i32, "\x00", "\x00", "\x41\x00\x41\x07\x20\x00\xfc\x0b\x00")}, 1600, 116},
		{"memory.copy", nil, []entry{function(i32, "\x00", "\x00", "\x41\x00\x41\x07\x20\x00\xfc\x0a\x00\x00")}, 15, 16},
		{"memory.grow", nil, []entry{function(i32, "\x00", "\x00", "\x20\x00\x40\x00\x1a")}, 1, 4096},
		{"table.fill", table, []entry{function(i32, "\x00", "\x00", "\x41\x00\xd0\x70\x20\x00\xfc\x11\x00")}, 4, 16},
		{"table.grow", table, []entry{function(i32, "\x00", "\x00", "\xd0\x70\x20\x00\xfc\x0f\x00\x1a")}, 160, 26},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			eachEngine(t, func(t *testing.T, config wazero.RuntimeConfig) {
				w := newTwins(t, config, programWith(tt.others, tt.entries...))
				args := []uint64{tt.arg, 0}[:len(w.plain.ExportedFunction(fmt.Sprint(len(tt.entries)-1)).Definition().ParamTypes())]
				w.call(t, fmt.Sprint(len(tt.entries)-1), args...)
				if used := testUnits - int64(mutable(w.rewritten, ExportUnits).Get()); used != tt.want {
					t.Errorf("%d units, want %d", used, tt.want)
				}
			})
		})
	}
}

// TestLengthsAreUnsigned has a range that is larger than any memory.
func TestLengthsAreUnsigned(t *testing.T) {
	t.Parallel()
	s, guest := rewrittenGuest(t, program(function("\x01\x7f", "\x00", "\x00", "\x41\x00\x41\x07\x20\x00\xfc\x0b\x00")))
	if _, trap := outcome(guest, "0", []uint64{1<<32 - 1}); !strings.Contains(trap, "out of bounds memory access") {
		t.Errorf("trap %q", trap)
	}
	if s.interrupts[InterruptUnits] != 0 {
		t.Errorf("interrupts %v: it is paid for in pieces", s.interrupts)
	}
}

// endless is functions that never end.
var endless = map[string]entry{
	"empty loop":      function("\x00", "\x00", "\x00", "\x03\x40\x0c\x00\x0b"),
	"loop of br_if":   function("\x00", "\x00", "\x00", "\x03\x40\x41\x01\x0d\x00\x0b"),
	"loop of a table": function("\x00", "\x00", "\x00", "\x03\x40\x41\x05\x0e\x01\x00\x00\x0b"),
	"result":          function("\x00", "\x01\x7f", "\x00", "\x03\x7f\x0c\x00\x0b"),
	"long":            function("\x00", "\x00", "\x00", "\x03\x40"+strings.Repeat("\x01", 200)+"\x0c\x00\x0b"),
	"outer loop":      function("\x00", "\x00", "\x00", "\x03\x40\x03\x40\x0b\x0c\x00\x0b"),
	"from inside":     function("\x00", "\x00", "\x00", "\x03\x40\x02\x40\x02\x40\x0c\x02\x0b\x0b\x0b"),
	"many loops":      function("\x00", "\x00", "\x00", strings.Repeat("\x03\x40\x0b", manyLoops)+"\x03\x40\x0c\x00\x0b"),
}

func TestEndlessLoopsAreInterrupted(t *testing.T) {
	t.Parallel()
	for name, f := range endless {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, guest := rewrittenGuest(t, program(f))
			s.patience = 3
			if _, err := guest.ExportedFunction("0").Call(t.Context()); !errors.Is(err, errUnwound) {
				t.Errorf("error %v", err)
			}
		})
	}
}

// TestCallsThatDouble has no loop and no recursion, and 2^40 calls.
func TestCallsThatDouble(t *testing.T) {
	t.Parallel()
	entries := []entry{function("\x00", "\x00", "\x00", strings.Repeat("\x01", 70))}
	for i := range byte(40) {
		entries = append(entries, function("\x00", "\x00", "\x00", "\x10"+string(rune(i))+"\x10"+string(rune(i))))
	}
	s, guest := rewrittenGuest(t, program(entries...))
	s.patience = 3
	if _, err := guest.ExportedFunction("40").Call(t.Context()); !errors.Is(err, errUnwound) {
		t.Errorf("error %v", err)
	}
}

func TestStartFunctionIsInterrupted(t *testing.T) {
	t.Parallel()
	s := newSandbox(t, wazero.NewRuntimeConfigCompiler())
	s.patience = 1
	r := rewrite(t, programWith(map[byte][]byte{sectionStart: {0}}, endless["empty loop"]))
	if _, err := s.begin(t.Context(), r); !errors.Is(err, errUnwound) {
		t.Errorf("error %v", err)
	}
}

func TestChecksAreCounted(t *testing.T) {
	t.Parallel()
	if r := rewrite(t, tight()); r.Loops != 1 || r.Entries != 0 {
		t.Errorf("a loop: %d and %d", r.Loops, r.Entries)
	}
	if r := rewrite(t, fibonacci()); r.Loops != 0 || r.Entries != 1 {
		t.Errorf("a function: %d and %d", r.Loops, r.Entries)
	}
}

// TestManyLoopsCallAFunction: the checks of many loops make no blocks.
func TestManyLoopsCallAFunction(t *testing.T) {
	t.Parallel()
	for loops, most := range map[int]int{manyLoops: 100 * manyLoops, manyLoops + 1: 10 * manyLoops} {
		file := program(function("\x01\x7f", "\x00", "\x00", strings.Repeat(countdown(60), loops)))
		if added := len(rewrite(t, file).Binary) - len(file); added > most || added < most/4 {
			t.Errorf("%d loops: %d bytes were added", loops, added)
		}
	}
}

func TestUnrollingIsBounded(t *testing.T) {
	t.Parallel()
	const loops = 200
	file := program(function("\x01\x7f", "\x00", "\x00", strings.Repeat(countdown(unrolledBody-12), loops)))
	if added := len(rewrite(t, file).Binary) - len(file); added < unrolledInAll || added > unrolledInAll+40*loops {
		t.Errorf("%d bytes were added", added)
	}
}
