package memory

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"testing"
)

// layered gives a memory that is based on an image of itself, over which there can be
// others where the kernel finds what has changed (image.pagemap).
func layered(t testing.TB, limit, size int) (*Memory, *Image) {
	t.Helper()
	m := New(limit)
	t.Cleanup(func() { must(t, m.Close()) })
	random := rand.New(rand.NewPCG(3, 4))
	content := m.Grow(size)
	for at := 0; at < size; at += 64 {
		if at>>14%3 > 0 { // a third is zero
			content[at] = byte(random.Uint32()) | 1
		}
	}
	return m, freeze(t, m)
}

// whole is what the memory of another instance in the image's state has.
func whole(t testing.TB, image *Image, limit int) []byte {
	t.Helper()
	m := New(limit)
	defer func() { must(t, m.Close()) }()
	must(t, m.Adopt(t.Context(), image))
	return bytes.Clone(m.Bytes())
}

// TestImagesOverImages makes images of images, in which anything may have changed, and
// closes them in any order: the memories of each have what its first one had.
func TestImagesOverImages(t *testing.T) {
	t.Parallel()
	const limit, size = 64 * wasmPage, 40 * wasmPage
	for seed := range uint64(8) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			random := rand.New(rand.NewPCG(seed, 1))
			m, lowest := layered(t, limit, size)
			type state struct {
				image *Image
				want  []byte
			}
			var states []state
			above := 0
			for range 12 {
				scribble(random, m.Bytes(), random.IntN(60))
				if random.IntN(3) == 0 {
					grown := m.Grow(min(len(m.Bytes())+random.IntN(5)*wasmPage, limit))
					scribble(random, grown, 5)
				}
				want := bytes.Clone(m.Bytes())
				image, err := m.Freeze(t.Context())
				must(t, err)
				if len(image.layers) > 1 {
					above++
				}
				if len(image.layers) > 1+maxRuns {
					t.Errorf("%d layers", len(image.layers))
				}
				if !bytes.Equal(m.Bytes(), want) {
					t.Fatal("the memory has changed with its image")
				}
				states = append(states, state{image, want})
				if random.IntN(2) == 0 { // continue with another memory, in an earlier state
					earlier := states[random.IntN(len(states))]
					next := New(limit)
					t.Cleanup(func() { must(t, next.Close()) })
					must(t, next.Adopt(t.Context(), earlier.image))
					m = next
				}
			}
			if above < 3 && lowest.pagemap >= 0 {
				t.Errorf("%d of the images are over others", above)
			}
			random.Shuffle(len(states), func(a, b int) { states[a], states[b] = states[b], states[a] })
			for _, s := range states {
				for _, way := range []Way{WayWatch, WayScan, WayDrop, WayCopy} {
					s.image.Choose(way)
					other := New(limit)
					must(t, other.Adopt(t.Context(), s.image))
					for range 4 {
						if !bytes.Equal(other.Bytes(), s.want) {
							t.Fatalf("%v: another memory is not as the first one", way)
						}
						other.Watch()
						scribble(random, other.Grow(min(len(s.want)+wasmPage, limit)), 50)
						must(t, other.Reset())
					}
					must(t, other.Close())
				}
				must(t, s.image.Close())
			}
		})
	}
}

func TestLayersShareWhatIsTheSame(t *testing.T) {
	t.Parallel()
	page := os.Getpagesize()
	const limit, size = 64 * wasmPage, 40 * wasmPage
	for name, tt := range map[string]struct {
		change func(m *Memory)
		runs   int // above the lowest layer; -1: an image of its own
		own    int // pages in them
	}{
		"nothing":     {func(*Memory) {}, 0, 0},
		"the same":    {func(m *Memory) { m.Bytes()[0] ^= 1; m.Bytes()[0] ^= 1 }, 0, 0},
		"a page":      {func(m *Memory) { m.Bytes()[5*wasmPage]++ }, 1, 1},
		"two pages":   {func(m *Memory) { m.Bytes()[5*wasmPage]++; m.Bytes()[9*wasmPage]++ }, 2, 2},
		"neighbors":   {func(m *Memory) { m.Bytes()[5*wasmPage-1]++; m.Bytes()[5*wasmPage]++ }, 1, 2},
		"zeros":       {func(m *Memory) { clear(m.Bytes()[4*page : 8*page]) }, 1, 0},
		"grown":       {func(m *Memory) { m.Grow(size + wasmPage) }, 1, 0},
		"grown, used": {func(m *Memory) { m.Grow(size + wasmPage)[size+page] = 1 }, 1, 1},
		"scattered":   {func(m *Memory) { scatter(m, 100, 6*page) }, maxRuns, -1},
		"most":        {func(m *Memory) { scatter(m, 640, page) }, -1, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m, below := layered(t, limit, size)
			if below.pagemap < 0 {
				return // nothing is shared
			}
			tt.change(m)
			want := bytes.Clone(m.Bytes())
			image := freeze(t, m)
			shares := image.layers[0].file == below.layers[0].file
			if runs := len(image.layers) - 1; shares != (tt.runs >= 0) || shares && tt.runs < maxRuns && runs != tt.runs || runs > maxRuns {
				t.Errorf("%d runs, shares %t", runs, shares)
			}
			if own := total(ownExtents(image)) / page; shares && tt.own >= 0 && own != tt.own {
				t.Errorf("%d pages are its own", own)
			}
			if !bytes.Equal(whole(t, image, limit), want) || !bytes.Equal(m.Bytes(), want) {
				t.Error("the image is another state")
			}
		})
	}
}

// ownExtents is what an image has above its lowest layer.
func ownExtents(i *Image) []extent {
	var runs []extent
	for _, l := range i.layers[1:] {
		runs = append(runs, l.extent)
	}
	return without(i.extents, without(i.extents, runs))
}

// scatter changes that many pages.
func scatter(m *Memory, pages, apart int) {
	content := m.Bytes()
	for n := range pages {
		content[n*apart%len(content)] ^= 0x80
	}
}

// TestLayersGoBackAsThoseBelow: what was measured for an image holds for one over it,
// unless that is too large to be copied as a whole.
func TestLayersGoBackAsThoseBelow(t *testing.T) {
	t.Parallel()
	const limit, size = mostCopied + wasmPage, 40 * wasmPage
	for _, way := range []Way{WayWatch, WayScan, WayDrop, WayCopy} {
		m, below := layered(t, limit, size)
		if below.pagemap < 0 {
			return // nothing is shared
		}
		m.Bytes()[0]++
		if _, timings := freeze(t, m).Way(); timings != nil {
			t.Errorf("nothing was measured, and the image has %v", timings)
		}
		must(t, m.Adopt(t.Context(), below))
		below.Choose(way)
		m.Bytes()[0]++
		if got, timings := freeze(t, m).Way(); got != way || timings == nil {
			t.Errorf("%v became %v", way, got)
		}
		m.Grow(limit)
		if _, timings := freeze(t, m).Way(); (timings == nil) != (way == WayCopy) {
			t.Errorf("%v of a large image became %v", way, timings)
		}
	}
}

// TestImagesOutliveThoseBelow closes an image before those that share its file.
func TestImagesOutliveThoseBelow(t *testing.T) {
	t.Parallel()
	m := New(4 * wasmPage)
	copy(m.Grow(2*wasmPage), "lowest")
	lowest, err := m.Freeze(t.Context())
	must(t, err)
	copy(m.Bytes()[wasmPage:], "above")
	want := bytes.Clone(m.Bytes())
	above, err := m.Freeze(t.Context())
	must(t, err)
	must(t, lowest.Close())
	if got := whole(t, above, 4*wasmPage); !bytes.Equal(got, want) {
		t.Error("it is another state")
	}
	must(t, m.Close())
	must(t, above.Close())
}

// TestSmallerImage: a memory that had a larger image has nothing of it afterwards.
func TestSmallerImage(t *testing.T) {
	t.Parallel()
	large, small := New(8*wasmPage), New(8*wasmPage)
	t.Cleanup(func() { must(t, errors.Join(large.Close(), small.Close())) })
	for i := range large.Grow(6 * wasmPage) {
		large.Bytes()[i] = 'x'
	}
	copy(small.Grow(wasmPage), "small")
	images := map[string]*Image{"large": freeze(t, large), "small": freeze(t, small), "copied": copied(bytes.Clone(small.Bytes())), "nothing": copied(nil)}
	for _, name := range []string{"small", "copied", "nothing"} {
		m := New(8 * wasmPage)
		must(t, m.Adopt(t.Context(), images["large"]))
		must(t, m.Adopt(t.Context(), images[name]))
		size := images[name].Size()
		for range 2 {
			if got := m.Grow(8 * wasmPage); !isZero(got[size:]) || size > 0 && !bytes.HasPrefix(got, []byte("small")) {
				t.Errorf("%s: something is left", name)
			}
			m.Bytes()[7*wasmPage] = 1
			must(t, m.Reset())
		}
		must(t, m.Close())
	}
}

// TestMappingsAreBounded is not parallel: it takes all that there may be.
func TestMappingsAreBounded(t *testing.T) {
	const limit, size = 64 * wasmPage, 40 * wasmPage
	before := mappings.Load()
	m, lowest := layered(t, limit, size)
	if lowest.pagemap < 0 {
		return // nothing is shared
	}
	scatter(m, 10, 2*wasmPage)
	want := bytes.Clone(m.Bytes())
	image := freeze(t, m)
	if got := mappings.Load() - before; got != 2*10 {
		t.Errorf("a memory with an image of 10 runs takes %d mappings", got)
	}
	others := maxMappings - mappings.Load()
	mappings.Add(others)
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errors.New("nobody waits"))
	other := New(limit)
	if err := other.Adopt(ctx, image); !errors.Is(err, context.Cause(ctx)) {
		t.Errorf("error %v", err)
	}
	for range 3 {
		if !bytes.Equal(whole(t, image, limit), want) {
			t.Error("it is another state")
		}
	}
	if image.flat.file.Load() == nil || mappings.Load() != maxMappings {
		t.Errorf("%d mappings", mappings.Load())
	}
	must(t, m.Reset()) // and takes none any more
	mappings.Add(-others)
	if got := mappings.Load(); got != before || !bytes.Equal(m.Bytes(), want) {
		t.Errorf("%d mappings are still taken", got-before)
	}
	must(t, other.Close())
}

// TestFlatImages: what the memories of an image have stays the same when it becomes flat,
// and images over it are images over what is below it.
func TestFlatImages(t *testing.T) {
	t.Parallel()
	const limit, size = 64 * wasmPage, 40 * wasmPage
	random := rand.New(rand.NewPCG(7, 7))
	for _, way := range []Way{WayWatch, WayScan, WayDrop, WayCopy} {
		m, lowest := layered(t, limit, size)
		if lowest.pagemap < 0 {
			return // nothing is shared
		}
		scatter(m, 10, 2*wasmPage)
		m.Grow(size + wasmPage)[size] = 1
		want := bytes.Clone(m.Bytes())
		image := freeze(t, m)
		image.Choose(way)
		for round := range 6 {
			if round == 2 {
				must(t, image.Flatten(t.Context()))
				must(t, image.Flatten(t.Context()))
			}
			m.Watch()
			scribble(random, m.Grow(limit), 20)
			must(t, m.Reset())
			if !bytes.Equal(m.Bytes(), want) || !bytes.Equal(whole(t, image, limit), want) {
				t.Fatalf("%v, round %d: it is another state", way, round)
			}
		}
		m.Bytes()[3*wasmPage]++
		want = bytes.Clone(m.Bytes())
		above := freeze(t, m)
		if above.layers[0].file != lowest.layers[0].file || !bytes.Equal(whole(t, above, limit), want) {
			t.Errorf("%v: the next image is not over the lowest one", way)
		}
	}
}

func TestExtents(t *testing.T) {
	t.Parallel()
	const page = 4096
	at := func(pairs ...int) (e []extent) {
		for i := 0; i < len(pairs); i += 2 {
			e = append(e, extent{start: pairs[i] * page, end: pairs[i+1] * page})
		}
		return e
	}
	same := func(a, b []extent) bool { return fmt.Sprint(a) == fmt.Sprint(b) }
	for _, tt := range []struct {
		most          int
		extents, want []extent
	}{
		{9, at(5, 6, 1, 2, 3, 4), at(1, 2, 3, 4, 5, 6)},
		{9, at(5, 8, 1, 6, 8, 9), at(1, 9)},
		{9, at(1, 9, 2, 3), at(1, 9)},
		{2, at(0, 1, 10, 11, 12, 13), at(0, 1, 10, 13)},
		{1, at(0, 1, 100, 101, 5_000, 5_001), at(0, 5_001)},
		{2, at(0, 1, 2, 3, 4, 5, 6, 7), at(0, 5, 6, 7)},
		{3, at(0, 1, 2, 3, 5, 6, 7, 8, 10, 11, 12, 13), at(0, 3, 5, 8, 10, 13)},
		{1, nil, nil},
	} {
		if got := join(tt.extents, tt.most); !same(got, tt.want) {
			t.Errorf("joined to %v, want %v", got, tt.want)
		}
	}
	for _, tt := range []struct{ extents, others, want []extent }{
		{at(0, 10), nil, at(0, 10)},
		{at(0, 10), at(2, 3, 5, 7), at(0, 2, 3, 5, 7, 10)},
		{at(0, 10), at(0, 1, 9, 20), at(1, 9)},
		{at(2, 4, 6, 8), at(0, 10), nil},
		{at(2, 4, 6, 8), at(3, 7), at(2, 3, 7, 8)},
		{at(2, 4, 6, 8), at(0, 2, 4, 6, 8, 9), at(2, 4, 6, 8)},
	} {
		if got := without(tt.extents, tt.others); !same(got, tt.want) {
			t.Errorf("%v without %v is %v, want %v", tt.extents, tt.others, got, tt.want)
		}
	}
}

// BenchmarkFreeze makes an image of 15 MB, 10 of them not zero, in which some pages have
// changed since the image before, in runs all over it: whole, and as a layer.
func BenchmarkFreeze(b *testing.B) {
	const size = 240 * wasmPage
	page := os.Getpagesize()
	for _, bb := range []struct{ pages, run int }{{32, 8}, {256, 8}, {256, 2}} {
		for _, over := range []bool{false, true} {
			b.Run(fmt.Sprintf("%d pages by %d/layer=%t", bb.pages, bb.run, over), func(b *testing.B) {
				m, below := layered(b, size, size)
				r := m.backing.(*region)
				for b.Loop() {
					b.StopTimer()
					must(b, m.Adopt(b.Context(), below))
					for n := range bb.pages {
						m.Bytes()[(n/bb.run*bb.run*(size/page/bb.pages)+n%bb.run)*page]++
					}
					b.StartTimer()
					based := below
					if !over {
						based = nil
					}
					image, err := r.freeze(b.Context(), size, based)
					must(b, err)
					must(b, m.Adopt(b.Context(), image))
					b.StopTimer()
					must(b, image.Close())
					b.StartTimer()
				}
			})
		}
	}
}

// BenchmarkLayers makes the memory of a further instance and closes it, and restores 29
// pages, with images of so many runs over another one.
func BenchmarkLayers(b *testing.B) {
	const size = 240 * wasmPage
	for _, runs := range []int{0, 8, 64} {
		m, image := layered(b, size, size)
		if scatter(m, runs, 3*wasmPage); runs > 0 {
			image = freeze(b, m)
		}
		image.Choose(WayScan)
		b.Run(fmt.Sprintf("%d runs/new", runs), func(b *testing.B) {
			for b.Loop() {
				other := New(size)
				must(b, other.Adopt(b.Context(), image))
				must(b, other.Close())
			}
		})
		reset := func(b *testing.B) {
			for b.Loop() {
				for n := range 29 {
					m.Bytes()[n*9*4096]++
				}
				must(b, m.Reset())
			}
		}
		b.Run(fmt.Sprintf("%d runs/reset", runs), reset)
		b.Run(fmt.Sprintf("%d runs/flatten", runs), func(b *testing.B) {
			for b.Loop() {
				must(b, image.Flatten(b.Context()))
				b.StopTimer()
				if all := image.flat.file.Swap(nil); all != nil {
					must(b, all.release())
				}
				b.StartTimer()
			}
		})
		must(b, image.Flatten(b.Context()))
		must(b, m.Reset())
		b.Run(fmt.Sprintf("%d runs/reset when flat", runs), reset)
	}
}
