package wasm

import (
	"bytes"
	"context"
	"errors"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/tetratelabs/wazero"
)

// active is an active data segment of memory 0.
func active(offset int, content []byte) []byte {
	var w writer
	w.uvarint(0)
	w.i32Const(int64(offset))
	w.bytes(opEnd)
	w.uvarint(len(content))
	w.bytes(content...)
	return w.out
}

func withData(segments ...[]byte) []byte {
	return module(section(sectionMemory, []byte("\x01\x00\x01")), section(sectionData, vector(segments...)))
}

const (
	initActive    = "\x41\x00\x41\x00\x20\x00\xfc\x08\x00\x00" // of as many bytes as the parameter
	initPassive   = "\x41\xe4\x00\x41\x00\x20\x00\xfc\x08\x01\x00"
	dropActive    = "\xfc\x09\x00"
	fillsNothing  = "\x41\x00\x41\x00\x41\x00\xfc\x0b\x00"
	passiveLetter = "\x01\x01p"
)

func TestActiveDataIsTakenOut(t *testing.T) {
	t.Parallel()
	uses := func(instructions string, segments ...[]byte) []byte {
		return programWith(map[byte][]byte{sectionDataCount: uleb(len(segments)), sectionData: vector(segments...)},
			function("\x01\x7f", "\x00", "\x00", instructions))
	}
	a, b := active(7, []byte("ab")), active(8, []byte("cd"))
	for name, tt := range map[string]struct {
		file []byte
		left int // segments
		data string
	}{
		"none":                      {withData(), 0, ""},
		"in its order":              {withData(a, b), 0, "\x07\x02ab\x08\x02cd"},
		"overlapping":               {withData(b, a, b), 0, "\x08\x02cd\x07\x02ab\x08\x02cd"},
		"up to the end":             {withData(active(65535, []byte("a")), active(65536, nil)), 0, "\xff\xff\x03\x01a\x80\x80\x04\x00"},
		"memory stated":             {withData([]byte("\x02\x00\x41\x07\x0b\x01a")), 0, "\x07\x01a"},
		"passive that nobody names": {withData(a, []byte(passiveLetter)), 0, "\x07\x02ab"},
		"counted":                   {uses(fillsNothing, a, b), 0, "\x07\x02ab\x08\x02cd"},
		"memory.init":               {uses(initPassive, a, []byte(passiveLetter), b), 3, "\x07\x02ab\x08\x02cd"},
		"memory.init of an active":  {uses(initActive, a, b), 2, "\x07\x02ab\x08\x02cd"},
		"data.drop":                 {uses(dropActive, a), 1, "\x07\x02ab"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := rewrite(t, tt.file)
			if string(r.Data) != tt.data || r.DataSegments != tt.left {
				t.Errorf("%q is taken and %d segments are left, want %q and %d", r.Data, r.DataSegments, tt.data, tt.left)
			}
			newTwins(t, wazero.NewRuntimeConfigInterpreter(), tt.file).compareAll(t)
		})
	}
}

// compareAll compares the memories, exported or not.
func (w *twins) compareAll(t testing.TB) {
	t.Helper()
	want, _ := w.plain.Memory().Read(0, w.plain.Memory().Size())
	got, _ := w.rewritten.Memory().Read(0, w.rewritten.Memory().Size())
	if !bytes.Equal(got, want) {
		t.Fatal("memory begins with something else")
	}
}

// TestActiveDataIsDropped: for the code, an active segment is one without bytes from the
// beginning (section 4.5.4 of the specification; wazero's own instances keep them).
func TestActiveDataIsDropped(t *testing.T) {
	t.Parallel()
	long := bytes.Repeat([]byte("x"), piece+5)
	for name, content := range map[string][]byte{"short": []byte("ab"), "long": long, "empty": nil} {
		file := programWith(map[byte][]byte{
			sectionDataCount: {2}, sectionData: vector(active(0, content), []byte("\x01\x03pqr")),
		},
			function("\x01\x7f", "\x00", "\x00", initActive),
			function("\x01\x7f", "\x00", "\x00", initPassive),
			function("\x00", "\x00", "\x00", dropActive))
		eachEngine(t, func(t *testing.T, config wazero.RuntimeConfig) {
			guest, err := newSandbox(t, config).begin(t.Context(), rewrite(t, file))
			if err != nil {
				t.Fatal(name, err)
			}
			for range 2 {
				if _, trap := outcome(guest, "0", []uint64{0}); trap != "" {
					t.Errorf("%s: no bytes of it: %s", name, trap)
				}
				for _, length := range []uint64{1, piece + 1, 1<<32 - 1} {
					if _, trap := outcome(guest, "0", []uint64{length}); !strings.Contains(trap, "out of bounds memory access") {
						t.Errorf("%s: %d bytes of it: %q", name, length, trap)
					}
				}
				if _, trap := outcome(guest, "1", []uint64{3}); trap != "" {
					t.Errorf("%s: a passive one: %s", name, trap)
				}
				if _, trap := outcome(guest, "2", nil); trap != "" {
					t.Errorf("%s: dropping it: %s", name, trap)
				}
			}
			want := make([]byte, 2*memoryPage)
			copy(want, content)
			copy(want[100:], "pqr")
			if got, _ := guest.Memory().Read(0, 2*memoryPage); !bytes.Equal(got, want) {
				t.Errorf("%s: memory has something else", name)
			}
		})
	}
}

// TestDataThatDoesNotFit fails when an instance is made, as it does without a rewrite.
func TestDataThatDoesNotFit(t *testing.T) {
	t.Parallel()
	fits, nothing := active(0, []byte("ab")), active(1, nil)
	numbered := func(segments ...[]byte) []byte {
		return programWith(map[byte][]byte{sectionDataCount: uleb(len(segments)), sectionData: vector(segments...)},
			function("\x00", "\x00", "\x00", dropActive))
	}
	for name, file := range map[string][]byte{
		"a byte":            withData(fits, active(65535, []byte("xy")), fits),
		"nothing":           withData(active(65537, nil)),
		"far":               withData(active(-1, []byte("x"))),
		"two":               withData(fits, []byte(passiveLetter), active(-1, []byte("x")), nothing, active(-2, []byte("x"))),
		"in no pages":       module(section(sectionMemory, []byte("\x01\x00\x00")), section(sectionData, vector(nothing))),
		"numbered":          numbered(fits, []byte(passiveLetter), active(1<<17, []byte("x")), fits),
		"without a memory":  module(section(sectionData, vector(fits))),
		"of another type":   withData([]byte("\x00\x42\x00\x0b\x01a")),
		"of another memory": module(section(sectionData, vector([]byte(passiveLetter), fits))),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSandbox(t, wazero.NewRuntimeConfigInterpreter())
			_, want := s.Instantiate(t.Context(), file)
			r := rewrite(t, file)
			if _, err := s.begin(t.Context(), r); want == nil || err == nil || err.Error() != want.Error() {
				t.Errorf("%v, plain %v", err, want)
			}
			if len(r.Data) > 0 {
				t.Errorf("%q is taken", r.Data)
			}
		})
	}
}

// TestDataOfOthersStays: what is imported decides where it goes, or has something already.
func TestDataOfOthersStays(t *testing.T) {
	t.Parallel()
	for name, imported := range map[string]string{"address": "\x01\x01a\x01g\x03\x7f\x00", "memory": "\x01\x01a\x01m\x02\x00\x01"} {
		sections := [][]byte{section(sectionImport, []byte(imported))}
		segments := [][]byte{active(0, []byte("a")), []byte("\x00\x23\x00\x0b\x01b")}
		if name == "memory" {
			segments = segments[:1]
		} else {
			sections = append(sections, section(sectionMemory, []byte("\x01\x00\x01")))
		}
		data := section(sectionData, vector(segments...))
		if r := rewrite(t, module(append(sections, data)...)); len(r.Data) > 0 || r.DataSegments != len(segments) || !bytes.HasSuffix(r.Binary, data) {
			t.Errorf("%s: %q is taken and %d segments are left", name, r.Data, r.DataSegments)
		}
	}
}

func TestRandomData(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(1, 2))
	for range 300 {
		var segments [][]byte
		for range random.IntN(30) {
			content := make([]byte, random.IntN(200))
			for i := range content {
				content[i] = byte(random.Uint32())
			}
			segments = append(segments, active(random.IntN(2000), content))
		}
		newTwins(t, wazero.NewRuntimeConfigInterpreter(), withData(segments...)).compareAll(t)
	}
}

func TestLayEndsWithItsContext(t *testing.T) {
	t.Parallel()
	long := writer{}
	long.uvarint(5)
	long.uvarint(3 << 20)
	long.bytes(bytes.Repeat([]byte("x"), 3<<20)...)
	cause := errors.New("enough")
	for name, data := range map[string]Data{"one byte": Data("\x05\x01x"), "much": long.out} {
		ctx, cancel := context.WithCancelCause(t.Context())
		cancel(cause)
		memory := make([]byte, 4<<20)
		if err := data.Lay(ctx, memory); !errors.Is(err, cause) || bytes.Contains(memory, []byte("x")) {
			t.Errorf("%s: %v", name, err)
		}
		if err := data.Lay(t.Context(), memory); err != nil || memory[5] != 'x' || memory[4] != 0 {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestLayRefusesDamagedData(t *testing.T) {
	t.Parallel()
	for _, data := range []string{"\x05", "\x05\x01", "\x05\x02x", "\x80", "\x0a\x01x", "\x0b\x00", "\x05\xff\xff\xff\xff\x0fx", "\xff\xff\xff\xff\xff\x7f\x00"} {
		if err := Data(data).Lay(t.Context(), make([]byte, 10)); !errors.Is(err, errData) {
			t.Errorf("%q: %v", data, err)
		}
	}
}
