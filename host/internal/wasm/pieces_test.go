package wasm

import (
	"strings"
	"testing"

	"github.com/tetratelabs/wazero"
)

// TestMemoryInitInPieces compares it with the instruction, for ranges at the borders of
// pieces, of the segment and of the memory, and after the segment is dropped.
func TestMemoryInitInPieces(t *testing.T) {
	t.Parallel()
	const memory = 4 << 16
	content := make([]byte, 3*piece-7)
	for i := range content {
		content[i] = byte(i>>8 + i)
	}
	long := string(uleb(len(content))) + string(content)
	file := programWith(map[byte][]byte{
		sectionMemory:    []byte("\x01\x00\x04"),
		sectionDataCount: []byte("\x03"),
		sectionData:      vector(active(memory-1, []byte("a")), []byte("\x01"+long), []byte("\x01\x03abc")),
	},
		function("\x03\x7f\x7f\x7f", "\x00", "\x00", "\x20\x00\x20\x01\x20\x02\xfc\x08\x01\x00"),
		function("\x03\x7f\x7f\x7f", "\x00", "\x00", "\x20\x00\x20\x01\x20\x02\xfc\x08\x02\x00"),
		function("\x00", "\x00", "\x00", "\xfc\x09\x01"))
	eachEngine(t, func(t *testing.T, config wazero.RuntimeConfig) {
		w := newTwins(t, config, file)
		size := uint64(len(content))
		lengths := []uint64{0, 1, piece - 1, piece, piece + 1, 2 * piece, size - 1, size, size + 1, 1<<32 - 1}
		for _, to := range []uint64{0, 5, memory - size, memory - size + 1, memory, 1<<32 - 1} {
			for _, from := range []uint64{0, 1, size - piece, size, 1<<32 - 1} {
				for _, length := range lengths {
					_, trap := w.call(t, "0", to, from, length)
					if inside := to+length <= memory && from+length <= size; inside != (trap == "") {
						t.Errorf("%d bytes from %d to %d: trap %q", length, from, to, trap)
					}
				}
			}
		}
		w.call(t, "1", 10, 0, 3)
		clear(w.interrupts)
		mutable(w.rewritten, ExportUnits).Set(0)
		w.call(t, "0", 0, 0, size)
		if w.interrupts[InterruptUnits] == 0 {
			t.Error("it is not interrupted")
		}
		w.call(t, "2")
		for _, length := range []uint64{0, 1, size} {
			if _, trap := w.call(t, "0", 0, 0, length); length > 0 && !strings.Contains(trap, "out of bounds") {
				t.Errorf("%d bytes of a dropped segment: trap %q", length, trap)
			}
		}
	})
}
