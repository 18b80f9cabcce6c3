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
	bytes   []byte   // content; not to be read outside of the extents
	extents []extent // the pages that are not all zeros, in order
	close   func() error

	// Of images that are mapped.
	file    int                      // descriptor; -1 of copies
	pagemap int                      // descriptor; -1 where the kernel cannot scan
	choice  atomic.Pointer[[]Timing] // nil until one memory has measured
}

// extent is a range of bytes.
type extent struct{ start, end int }

// zeros reports whether the image is zero from start on, and up to where that
// is so.
func (i *Image) zeros(start int) (zero bool, end int) {
	next := sort.Search(len(i.extents), func(n int) bool { return i.extents[n].end > start })
	switch {
	case next == len(i.extents):
		return true, i.size
	case start < i.extents[next].start:
		return true, i.extents[next].start
	}
	return false, i.extents[next].end
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
func (i *Image) Shared() bool { return i.file >= 0 }

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
		size: len(content), bytes: bytes.Clone(content), extents: []extent{{0, len(content)}},
		close: func() error { return nil }, file: -1, pagemap: -1,
	}
}

// Close frees the image. No memory may use it any more.
func (i *Image) Close() error { return i.close() }
