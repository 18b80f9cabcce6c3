package memory

import (
	"fmt"
	"os"
	"unsafe"

	"golang.org/x/sys/unix"
)

// region is a memory with a separate range of addresses. It never moves. Its first
// bytes are a private mapping of the image that it adopted, the others are
// anonymous; both take no memory before they are touched.
type region struct {
	mapping  []byte // whole pages
	all      []byte // as much of it as may be used
	usual    int    // pages that one call writes to; -1: unknown until the next scan
	retained int    // bytes of private pages in the image's range

	found    [batch]scanRegion // of the last scan
	known    []scanRegion      // of them, what its last batch has found
	complete bool              // known is all private pages of the image's range

	man     *watchman
	watched bool // the goroutine of the call stays on its thread
	counted bool // the thread's page faults are known, as is their number when the call began
	faults  int64
}

// reserve takes address space for limit bytes.
func reserve(limit int) (backing, error) {
	mapping, err := unix.Mmap(-1, 0, roundUp(limit), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS|unix.MAP_NORESERVE)
	if err != nil {
		return nil, fmt.Errorf("reserving %d bytes of address space: %w", limit, err)
	}
	// One byte that is written must not take a page of 2 MB.
	_ = unix.Madvise(mapping, unix.MADV_NOHUGEPAGE) // kernels without huge pages refuse it
	return &region{mapping: mapping, all: mapping[:limit:limit], usual: -1, man: &process}, nil
}

func roundUp(size int) int {
	page := os.Getpagesize()
	return (max(size, 1) + page - 1) / page * page
}

func (r *region) grow(_, size int) []byte {
	if size > len(r.all) {
		return nil
	}
	return r.all[:size:size]
}

func (r *region) adopt(image *Image) error {
	if image.size > len(r.all) {
		return fmt.Errorf("an image of %d bytes is larger than the memory's limit of %d", image.size, len(r.all))
	}
	if image.size == 0 {
		return nil
	}
	if !image.Shared() {
		r.copy(image)
		return r.forget(image.size, len(r.all))
	}
	_, err := unix.MmapPtr(image.file, 0, unsafe.Pointer(unsafe.SliceData(r.all)), uintptr(image.size),
		unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_FIXED|unix.MAP_NORESERVE)
	if err != nil {
		return fmt.Errorf("mapping the image: %w", err)
	}
	r.retained, r.usual, r.complete = 0, -1, false
	return r.forget(image.size, len(r.all))
}

func (r *region) reset(image *Image, used int) error {
	defer r.release()
	if used > image.size {
		if err := r.forget(image.size, used); err != nil {
			return err
		}
	}
	if image.size == 0 {
		return nil
	}
	way, timings := image.Way()
	if timings == nil && image.Shared() {
		return r.calibrate(image)
	}
	return r.resetBy(way, image)
}

func (r *region) resetBy(way Way, image *Image) error {
	switch way {
	case WayWatch:
		return r.resetWatched(image)
	case WayScan:
		return r.scan(image)
	case WayDrop:
		return r.drop(image)
	}
	r.copy(image)
	return nil
}

// drop gives all private pages of the image's range back.
func (r *region) drop(image *Image) error {
	r.retained, r.usual, r.complete = 0, -1, false
	return r.forget(0, image.size)
}

// forget gives pages back to the kernel. They are what they were when they were
// mapped: the image's or zero.
func (r *region) forget(start, end int) error {
	if start >= end {
		return nil
	}
	if err := unix.Madvise(r.mapping[start:roundUp(end)], unix.MADV_DONTNEED); err != nil {
		return fmt.Errorf("giving memory back: %w", err)
	}
	return nil
}

// copy writes all of the image.
func (r *region) copy(image *Image) {
	r.restore(image, 0, image.size)
	r.retained, r.complete = image.size, false
}

// restore writes the image's bytes from start to end, some at a time: nothing can
// interrupt a copy, and Go's garbage collector would wait for it.
func (r *region) restore(image *Image, start, end int) {
	const most = 1 << 20
	for start < end {
		zero, stop := image.zeros(start)
		stop = min(stop, end, start+most)
		if zero {
			clear(r.all[start:stop])
		} else {
			copy(r.all[start:stop], image.bytes[start:stop])
		}
		start = stop
	}
}

func (r *region) private() int { return r.retained }

func (r *region) close() error {
	r.release()
	r.all = nil
	return unix.Munmap(r.mapping)
}
