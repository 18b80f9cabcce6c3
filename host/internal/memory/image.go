package memory

import (
	"bytes"
	"sort"
	"sync/atomic"
	"time"
)

// Way is how a memory goes back to its image.
type Way uint8

// Ways of [Memory.Reset].
const (
	// WayCopy copies all of the image. It is what is left where the others are
	// not available, and the fastest for the smallest memories.
	WayCopy Way = iota

	// WayDrop gives all pages that were written to back to the kernel
	// (MADV_DONTNEED): the next access to each of them is a page fault.
	WayDrop

	// WayScan asks the kernel which pages were written to (PAGEMAP_SCAN, Linux
	// 6.7) and copies those. They stay where they are, so that the next call
	// has no page faults.
	WayScan

	// WayWatch does as WayScan, but does not ask when the thread of the call took
	// no page fault: the call has then written to no other pages than earlier ones.
	WayWatch
)

func (w Way) String() string {
	return [...]string{"copy", "drop", "scan", "watch"}[w]
}

// Image is what memories go back to. It is safe for concurrent use.
type Image struct {
	size    int
	extents []extent // what is not zero, in order
	close   func() error

	// Of images that are mapped.
	layers  []layer                  // the lowest one first; none of copies
	flat    flat                     // all of them as one
	pagemap int                      // descriptor; -1 where the kernel cannot scan
	choice  atomic.Pointer[[]Timing] // nil until one memory has measured
}

// from gives the content from start on, nil for zeros, and up to where that is.
func (i *Image) from(start int) (content []byte, end int) {
	next := sort.Search(len(i.extents), func(n int) bool { return i.extents[n].end > start })
	if next == len(i.extents) {
		return nil, i.size
	}
	e := i.extents[next]
	if start < e.start {
		return nil, e.start
	}
	return e.of[start:e.end], e.end
}

// restore writes the content from start to end to a memory, some at a time: nothing can
// interrupt a copy, and Go's garbage collector would wait for it.
func (i *Image) restore(memory []byte, start, end int) {
	const most = 1 << 20
	for start < end {
		content, stop := i.from(start)
		stop = min(stop, end, start+most)
		if content == nil {
			clear(memory[start:stop])
		} else {
			copy(memory[start:stop], content)
		}
		start = stop
	}
}

// Timing is what one way costs.
type Timing struct {
	Way  Way
	Cost time.Duration // of a reset, and of the page faults that follow from it
}

// Size is the bytes of a memory that is in this state.
func (i *Image) Size() int { return i.size }

// Shared reports whether memories of the image share the pages that they have
// not written to.
func (i *Image) Shared() bool { return len(i.layers) > 0 }

// Way is the one that is used. Timings is what was measured to choose it, best
// first; it is empty before the first reset and where there is nothing to choose.
func (i *Image) Way() (way Way, timings []Timing) {
	if choice := i.choice.Load(); choice != nil {
		return (*choice)[0].Way, *choice
	}
	return WayCopy, nil
}

// Choose makes all memories of a shared image go back to it in one way, whatever
// is the fastest: tests go through all of them.
func (i *Image) Choose(way Way) { i.choice.Store(&[]Timing{{Way: way}}) }

// copied is an image that memories cannot map.
func copied(content []byte) *Image {
	return &Image{
		size: len(content), extents: []extent{{0, len(content), bytes.Clone(content)}},
		close: func() error { return nil }, pagemap: -1,
	}
}

// Close frees the image. No memory may use it any more.
func (i *Image) Close() error { return i.close() }
