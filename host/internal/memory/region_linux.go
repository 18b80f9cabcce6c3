package memory

import (
	"context"
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
	mapped   int    // bytes that files are mapped to
	taken    int64  // mappings, for layers

	found    [batch]scanRegion // of the last scan
	known    []scanRegion      // of them, what its last batch has found
	complete bool              // known is all private pages of the image's range

	man     *watchman
	watched bool // the goroutine of the call stays on its thread
	paused  bool // it has left that, and the call had taken no page fault until then
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

func (r *region) adopt(ctx context.Context, image *Image, used int) error {
	if image.size > len(r.all) {
		return fmt.Errorf("an image of %d bytes is larger than the memory's limit of %d", image.size, len(r.all))
	}
	layers, taken, err := image.mappable(ctx)
	if err == nil {
		err = r.mapFiles(layers, taken)
	}
	if err != nil {
		return fmt.Errorf("mapping the image: %w", err)
	}
	if !image.Shared() {
		r.copy(image)
	}
	return r.forget(image.size, used)
}

// mapFiles maps layers, and nothing of the files that were mapped before. So many mappings
// are taken for that.
func (r *region) mapFiles(layers []layer, taken int64) error {
	mappings.Add(-r.taken)
	r.taken, r.retained, r.usual, r.complete = taken, 0, -1, false
	end := 0
	for _, l := range layers {
		end = max(end, roundUp(l.end))
	}
	if r.mapped > end {
		_, err := unix.MmapPtr(-1, 0, unsafe.Pointer(&r.mapping[end]), uintptr(r.mapped-end),
			unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS|unix.MAP_NORESERVE|unix.MAP_FIXED)
		if err != nil {
			return err
		}
		_ = unix.Madvise(r.mapping[end:r.mapped], unix.MADV_NOHUGEPAGE) // as in reserve
	}
	r.mapped = end
	for _, l := range layers {
		if l.start == l.end { // of a memory without bytes
			continue
		}
		_, err := unix.MmapPtr(l.file.descriptor, int64(l.start), unsafe.Pointer(&r.all[l.start]), uintptr(l.end-l.start),
			unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_FIXED|unix.MAP_NORESERVE)
		if err != nil {
			return err
		}
	}
	return nil
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
	if r.taken > 0 && image.flat.file.Load() != nil {
		return r.mapFiles(image.flattened(), 0)
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
	image.restore(r.all, 0, image.size)
	r.retained, r.complete = image.size, false
}

func (r *region) private() int { return r.retained }

func (r *region) close() error {
	r.release()
	r.all = nil
	mappings.Add(-r.taken)
	return unix.Munmap(r.mapping)
}
