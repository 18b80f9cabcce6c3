package wasm

import (
	"strings"
	"testing"
)

// TestRewrittenIsInProportion is not parallel: it counts what is allocated
// meanwhile. It has modules of what grows most.
func TestRewrittenIsInProportion(t *testing.T) {
	manyOf := func(size int, f func(i int) string) []byte {
		var bodies [][]byte
		for size > 0 {
			body := []byte("\x00" + f(len(bodies)) + "\x0b")
			bodies, size = append(bodies, body), size-len(body)
		}
		return functions(bodies...)
	}
	leb := func(n int) string { return string(uleb(n)) }
	same := func(instructions string) func(int) string {
		return func(int) string { return instructions }
	}
	const size = 1 << 18
	for name, file := range map[string][]byte{
		"small functions":  manyOf(size/10, same("")),
		"small loops":      manyOf(size, same(strings.Repeat("\x03\x40\x0b", manyLoops))),
		"too many loops":   manyOf(size/10, same(strings.Repeat("\x03\x40\x0b", 4_000))),
		"unrolled loops":   manyOf(size, same(countdown(50))),
		"memory.grow":      manyOf(size, same(strings.Repeat("\x40\x00", 10_000))),
		"changes":          manyOf(size, same(strings.Repeat("\xfc\x09\x00", 10_000))),
		"ranges":           manyOf(size, same(strings.Repeat("\xfc\x0b\x00", 10_000))),
		"returns":          manyOf(size, func(i int) string { return "\x10" + leb(i) + strings.Repeat("\x0f", 10_000) }),
		"calls of one":     manyOf(size, same(strings.Repeat("\x10\x01", 10_000))),
		"calls of another": manyOf(size/10, func(i int) string { return "\x10" + leb(max(0, i-1)) }),
		"blocks":           manyOf(size/10, same(strings.Repeat("\x02\x40\x0b", 4_000))),
		"nested blocks":    manyOf(size/10, same(strings.Repeat("\x02\x40", 4_000)+strings.Repeat("\x0b", 4_000))),
		"stretches":        manyOf(size, same(strings.Repeat("\x04\x40"+strings.Repeat("\x45", smallStretch)+"\x0b", 4_000))),
		"globals":          module(section(sectionGlobal, repeated(10_000, "\x7f\x01\x41\x00\x0b"))),
		"elements":         module(oneType, oneImport, section(sectionElement, []byte("\x01\x01\x00"), repeated(100_000, "\x00"))),
	} {
		t.Run(name, func(t *testing.T) {
			m, err := Decode(file, Options{})
			if err != nil {
				t.Fatal(err)
			}
			var r *Rewritten
			used := allocated(func() { r = m.Rewrite(RewriteOptions{}) })
			grown, needed := float64(len(r.Binary))/float64(len(file)), float64(max(used, 1<<20)-1<<20)/float64(len(file))
			t.Logf("%d bytes, %.1f times that rewritten, %.1f allocated", len(file), grown, needed)
			if grown > 16 || needed > 32 {
				t.Errorf("%d bytes: %.1f times that rewritten, %.1f allocated", len(file), grown, needed)
			}
		})
	}
}
