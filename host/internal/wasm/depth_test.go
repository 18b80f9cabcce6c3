package wasm

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/tetratelabs/wazero"
)

// counted makes a function of an i32 count depth: it calls itself when the
// parameter is 99, which it never is, and drops the results.
func counted(index byte, results, locals, instructions string) entry {
	drops := strings.Repeat("\x1a", len(results)-1)
	return function("\x01\x7f", results, locals, "\x20\x00\x41\xe3\x00\x46\x04\x40\x20\x00\x10"+string(rune(index))+drops+"\x0b"+instructions)
}

// TestWaysOut leaves functions that count depth in every way there is. newTwins
// checks that the depth is what it was.
func TestWaysOut(t *testing.T) {
	t.Parallel()
	const two = "\x02\x7f\x7e" // results
	values := func(n string) string { return "\x41" + n + "\x42" + n }
	tests := []struct{ name, results, instructions string }{
		{"end", "\x00", ""},
		{"end with a value", "\x01\x7f", "\x41\x05"},
		{"end with two values", two, values("\x05")},
		{"return", "\x00", "\x0f"},
		{"return of two values", two, values("\x01") + "\x0f"},
		{"return with more on the stack", two, "\x41\x09" + values("\x01") + "\x0f"},
		{"return in blocks", two, "\x02\x40\x03\x40\x02\x40" + values("\x01") + "\x0f\x0b\x0b\x0b" + values("\x02")},
		{"return or not", two, "\x20\x00\x04\x40" + values("\x01") + "\x0f\x05\x20\x00\x1a\x0b" + values("\x02")},
		{"branch to the function", two, "\x02\x40\x02\x40" + values("\x03") + "\x0c\x02\x0b\x0b" + values("\x02")},
		{"branch to the function or not", two, values("\x03") + "\x20\x00\x0d\x00"},
		{"table of branches", two, "\x02\x02" + values("\x04") + "\x20\x00\x0e\x02\x00\x01\x00\x0b"},
		{"return from small loops", two, "\x03\x40" + values("\x04") + "\x20\x00\x45\x04\x02\x0f\x05\x0b\x1a\x1a\x20\x00\x41\x01\x6b\x22\x00\x0d\x00\x0b" + values("\x02")},
		{"branch from small loops", two, "\x02\x40\x03\x40" + values("\x04") + "\x20\x00\x45\x0d\x02\x1a\x1a\x20\x00\x41\x01\x6b\x21\x00\x0c\x00\x0b\x0b" + values("\x02")},
		{"table of branches from small loops", "\x00", "\x02\x40\x03\x40\x20\x00\x41\x01\x6b\x22\x00\x0e\x03\x02\x01\x00\x00\x0b\x0b"},
		{"blocks in small loops", "\x00", "\x02\x40\x03\x40\x02\x40\x20\x00\x41\x01\x6b\x22\x00\x45\x0d\x02\x20\x00\x41\x02\x70\x0d\x01\x20\x00\x41\x03\x70\x0d\x00\x0c\x03\x0b\x0c\x00\x0b\x0b"},
		{"trap", "\x00", "\x00"},
	}
	types := map[byte][]byte{}
	var entries []entry
	for i, tt := range tests {
		// The type of the block of two values is type 2, that of the third function,
		// with a parameter; branches give it one.
		instructions := strings.ReplaceAll(tt.instructions, "\x02\x02\x41", "\x20\x00\x02\x02\x1a\x41")
		instructions = strings.ReplaceAll(instructions, "\x04\x02\x0f\x05\x0b", "\x04\x40"+values("\x04")+"\x0f\x0b")
		entries = append(entries, counted(byte(i), tt.results, "\x00", instructions))
	}
	binary := programWith(types, entries...)
	m, err := Decode(binary, Options{})
	if err != nil {
		t.Fatal(err)
	}
	for i, f := range m.analyze().functions {
		if !f.counted {
			t.Errorf("function %d does not count depth", i)
		}
	}
	eachEngine(t, func(t *testing.T, config wazero.RuntimeConfig) {
		w := newTwins(t, config, binary)
		for i, tt := range tests {
			for arg := uint64(1); arg < 12; arg++ {
				_, trap := w.call(t, fmt.Sprint(i), arg)
				if (trap != "") != (tt.name == "trap") {
					t.Fatalf("%s %d: %s", tt.name, arg, trap)
				}
			}
		}
	})
}

func TestDepthThatIsReached(t *testing.T) {
	t.Parallel()
	self := "\x20\x00\x04\x40\x20\x00\x41\x01\x6b\x10\x00\x0b"
	for name, binary := range map[string][]byte{
		"direct": program(function("\x01\x7f", "\x00", "\x00", self)),
		"two": program(
			function("\x01\x7f", "\x00", "\x00", "\x20\x00\x10\x01"),
			function("\x01\x7f", "\x00", "\x00", self)),
		"indirect": programWith(
			map[byte][]byte{sectionTable: []byte("\x01\x70\x00\x01"), sectionElement: []byte("\x01\x00\x41\x00\x0b\x01\x00")},
			function("\x01\x7f", "\x00", "\x00", "\x20\x00\x04\x40\x20\x00\x41\x01\x6b\x41\x00\x11\x00\x00\x0b")),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, guest := rewrittenGuest(t, binary)
			f := guest.ExportedFunction("0")
			if _, err := f.Call(t.Context(), testDepth-1); err != nil || s.interrupts[InterruptDepth] != 0 {
				t.Fatalf("at the limit: %v", err)
			}
			if _, err := f.Call(t.Context(), testDepth); !errors.Is(err, errUnwound) || s.interrupts[InterruptDepth] != 1 {
				t.Fatalf("over the limit: %v", err)
			}
			if depth := int32(mutable(guest, ExportDepth).Get()); depth != -1 {
				t.Errorf("depth %d", depth)
			}
			mutable(guest, ExportDepth).Set(testDepth)
			if _, err := f.Call(t.Context(), testDepth-1); err != nil {
				t.Errorf("afterwards: %v", err)
			}
		})
	}
}

// TestEachRecursionIsCounted has call graphs, written as callees by caller; "*"
// is an indirect call.
func TestEachRecursionIsCounted(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ graph, want string }{
		{"0: ; 1: 0", ""},
		{"0: 0", "0"},
		{"0: 1 ; 1: 2 ; 2: 0", "0"},
		{"0: 1 1 1 ; 1: 2 2 ; 2: ", ""},
		{"0: 1 ; 1: 2 ; 2: 1", "1"},
		{"0: 1 2 ; 1: 0 ; 2: 0 2", "0 2"},
		{"0: * ; 1: 0", "0"},
		{"0: * 1 ; 1: 0", "0"},
		{"0: * 1 ; 1: 2 0 ; 2: 1 0", "0 1"},
		{"0: 1 ; 1: 2 ; 2: 3 0 ; 3: 1", "0 1"},
		{"0: 2 ; 1: 0 ; 2: 1", "0"},
	} {
		callers := strings.Split(tt.graph, " ; ")
		functions := make([]facts, len(callers))
		g := newCallGraph(functions)
		for i, caller := range callers {
			var calls []int
			for _, callee := range strings.Fields(caller)[1:] {
				if callee == "*" {
					functions[i].indirect = true
				} else {
					calls = append(calls, int(callee[0]-'0'))
				}
			}
			g.add(calls)
		}
		g.markCounted()
		if tt.graph == "0: 1 1 1 ; 1: 2 2 ; 2: " && len(g.edges) != 2 {
			t.Errorf("%s: %d edges", tt.graph, len(g.edges))
		}
		var got []string
		for i, f := range functions {
			if f.counted {
				got = append(got, fmt.Sprint(i))
			}
		}
		if s := strings.Join(got, " "); s != tt.want {
			t.Errorf("%s: counted %q, want %q", tt.graph, s, tt.want)
		}
	}
}

// TestDeepCallGraph has a chain of 100 000 functions, which a recursive search
// would follow on the stack.
func TestDeepCallGraph(t *testing.T) {
	t.Parallel()
	const n = 100_000
	functions := make([]facts, n)
	g := newCallGraph(functions)
	for i := range n {
		g.add([]int{(i + 1) % n})
	}
	g.markCounted()
	for i, f := range functions {
		if f.counted != (i == 0) {
			t.Fatalf("function %d: counted %v", i, f.counted)
		}
	}
}
