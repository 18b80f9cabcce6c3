package memory

import (
	"bytes"
	"context"
	"errors"
	"math/rand/v2"
	"os"
	"testing"
)

const wasmPage = 64 << 10

// backings is one new memory of each kind that this machine has.
func backings(t testing.TB, limit int) map[string]*Memory {
	t.Helper()
	all := map[string]*Memory{"heap": {backing: newHeap(limit)}}
	if region, err := reserve(limit); err == nil {
		all["region"] = &Memory{backing: region}
	}
	for _, m := range all {
		t.Cleanup(func() { must(t, m.Close()) })
	}
	return all
}

// freeze gives an image that lasts as long as the test.
func freeze(t testing.TB, m *Memory) *Image {
	t.Helper()
	image, err := m.Freeze(t.Context())
	must(t, err)
	t.Cleanup(func() { must(t, image.Close()) })
	return image
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func TestMemoryGrowsWithZerosUpToItsLimit(t *testing.T) {
	t.Parallel()
	for name, m := range backings(t, 4*wasmPage) {
		if got := m.Grow(0); got == nil || len(got) != 0 {
			t.Errorf("%s: nothing is %d bytes, nil %v", name, len(got), got == nil)
		}
		for size := wasmPage; size <= 4*wasmPage; size += wasmPage {
			got := m.Grow(size)
			if len(got) != size || !isZero(got[size-wasmPage:]) {
				t.Fatalf("%s: %d bytes, want %d with zeros at the end", name, len(got), size)
			}
			got[size-1] = 1
		}
		if m.Grow(4*wasmPage+1) != nil {
			t.Errorf("%s: grew over its limit", name)
		}
		if got := m.Bytes(); len(got) != 4*wasmPage || got[wasmPage-1] != 1 {
			t.Errorf("%s: a refused growth changed it", name)
		}
		if got := m.Grow(wasmPage); len(got) != 4*wasmPage {
			t.Errorf("%s: got smaller", name)
		}
	}
}

func TestResetNeedsAnImage(t *testing.T) {
	t.Parallel()
	for name, m := range backings(t, wasmPage) {
		if err := m.Reset(); !errors.Is(err, ErrNoImage) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestMemoryWithoutBytes(t *testing.T) {
	t.Parallel()
	for name, m := range backings(t, wasmPage) {
		image := freeze(t, m)
		m.Grow(wasmPage)[0] = 1
		must(t, m.Reset())
		if image.Size() != 0 || len(m.Bytes()) != 0 {
			t.Errorf("%s: %d bytes are left", name, len(m.Bytes()))
		}
		if !isZero(m.Grow(wasmPage)) {
			t.Errorf("%s: remembers what it was", name)
		}
	}
}

// A guest does anything to its memory; afterwards the memory is as it was. All
// ways are tried, and memories of one image do not see each other.
func TestResetUndoesEverything(t *testing.T) {
	t.Parallel()
	const limit = 24 * wasmPage
	for name := range backings(t, limit) {
		for _, way := range []Way{WayWatch, WayScan, WayDrop, WayCopy} {
			t.Run(name+" "+way.String(), func(t *testing.T) {
				t.Parallel()
				random := rand.New(rand.NewPCG(1, uint64(way)))
				first := backings(t, limit)[name]
				scribble(random, first.Grow(8*wasmPage), 20)
				want := bytes.Clone(first.Bytes())
				image := freeze(t, first)
				if name == "region" && way == WayCopy { // as where there are no files in memory
					image = copied(want)
					must(t, first.Adopt(t.Context(), image))
				}
				if image.pagemap >= 0 || way == WayDrop || way == WayCopy {
					image.choice.Store(&[]Timing{{Way: way}})
				}
				other := backings(t, limit)[name]
				must(t, other.Adopt(t.Context(), image))
				for round := range 300 {
					m := []*Memory{first, other}[round%2]
					if got := m.Bytes(); !bytes.Equal(got, want) {
						t.Fatalf("round %d: the memory is not as it was", round)
					}
					if m.Watch(); random.IntN(2) == 0 {
						scribble(random, m.Bytes(), random.IntN(100))
					}
					if random.IntN(3) == 0 {
						grown := m.Grow(8*wasmPage + random.IntN(16)*wasmPage)
						if !isZero(grown[8*wasmPage:]) {
							t.Fatalf("round %d: what was grown is not zero", round)
						}
						scribble(random, grown, 50)
					}
					must(t, m.Reset())
				}
			})
		}
	}
}

// scribble writes to some places: single bytes, whole runs of pages, zeros.
func scribble(random *rand.Rand, memory []byte, times int) {
	for range times {
		at := random.IntN(len(memory))
		run := memory[at:min(len(memory), at+random.IntN(1<<random.IntN(17)))]
		value := byte(random.IntN(3))
		for i := range run {
			run[i] = value
		}
		memory[at] = byte(random.Uint32())
	}
}

func isZero(b []byte) bool { return len(bytes.TrimLeft(b, "\x00")) == 0 }

func TestFirstResetChoosesAWay(t *testing.T) {
	t.Parallel()
	m := New(16 * wasmPage)
	t.Cleanup(func() { must(t, m.Close()) })
	copy(m.Grow(16*wasmPage), "content")
	image := freeze(t, m)
	if _, timings := image.Way(); timings != nil {
		t.Errorf("measured before anything was written: %v", timings)
	}
	m.Bytes()[5*wasmPage] = 1
	must(t, m.Reset())
	way, timings := image.Way()
	if _, portable := m.backing.(*heap); portable {
		if way != WayCopy || timings != nil {
			t.Errorf("slices go back by %v, %v", way, timings)
		}
		return
	}
	if len(timings) < 2 || timings[0].Way != way || timings[0].Cost > timings[1].Cost || timings[0].Cost <= 0 {
		t.Errorf("%v of %v", way, timings)
	}
	if got := m.Bytes(); string(got[:7]) != "content" || !isZero(got[7:]) {
		t.Error("measuring has left something behind")
	}
}

// What a memory keeps is what its calls usually write to, not all that any of
// them ever did.
func TestPrivatePagesDoNotAccumulate(t *testing.T) {
	t.Parallel()
	m, ok := backings(t, 1000*wasmPage)["region"]
	if !ok {
		return // slices are private as a whole
	}
	m.Grow(1000 * wasmPage)
	image := freeze(t, m)
	if image.pagemap < 0 {
		return // dropped after each call
	}
	image.choice.Store(&[]Timing{{Way: WayScan}})
	page := os.Getpagesize()
	for call := range 500 {
		for n := range 10 {
			m.Bytes()[(call*10+n)*page] = 1
		}
		must(t, m.Reset())
		if most := 200 * page; m.Private() > most {
			t.Fatalf("call %d: %d bytes are private, want %d at most", call, m.Private(), most)
		}
	}
}

func BenchmarkReset(b *testing.B) {
	for _, bb := range []struct {
		name          string
		size, written int // bytes, pages
		stride        int
	}{
		{"small guest", 2 * wasmPage, 3, 4096},
		{"Go guest", 54 * wasmPage, 29, 9 * 4096},
		{"large", 1600 * wasmPage, 500, 7 * 4096},
	} {
		for _, way := range []Way{WayWatch, WayScan, WayDrop, WayCopy} {
			b.Run(bb.name+"/"+way.String(), func(b *testing.B) {
				m := backings(b, bb.size)["region"]
				for i := range m.Grow(bb.size) {
					if i/4096%3 == 0 {
						m.Bytes()[i] = byte(i)
					}
				}
				image := freeze(b, m)
				image.choice.Store(&[]Timing{{Way: way}})
				for b.Loop() {
					m.Watch()
					for n := range bb.written {
						m.Bytes()[n*bb.stride]++
					}
					must(b, m.Reset())
				}
			})
		}
	}
}

// TestFreezingEnds ends the context of a memory that becomes an image later.
func TestFreezingEnds(t *testing.T) {
	t.Parallel()
	m := New(1 << 30)
	t.Cleanup(func() { must(t, m.Close()) })
	if _, onHeap := m.backing.(*heap); onHeap {
		return // it is copied at once
	}
	m.Grow(3 << 20)[5] = 1
	ctx, cancel := context.WithCancelCause(t.Context())
	why := errors.New("nobody waits")
	cancel(why)
	if _, err := m.Freeze(ctx); !errors.Is(err, why) {
		t.Errorf("error %v", err)
	}
	freeze(t, m) // as if nothing had been
	if m.Bytes()[5] != 1 {
		t.Error("the memory is another one")
	}
}
