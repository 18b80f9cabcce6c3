package memory

import (
	"fmt"
	"os"
	"unsafe"

	"golang.org/x/sys/unix"
)

// The ioctl of /proc/PID/pagemap, from linux/fs.h and Documentation/
// admin-guide/mm/pagemap.rst.
const (
	pagemapScan = 0xc0606610

	pageIsFile    = 1 << 2
	pageIsPresent = 1 << 3
	pageIsSwapped = 1 << 4
)

// scanRequest is struct pm_scan_arg.
type scanRequest struct {
	size, flags         uint64
	start, end, walkEnd uint64
	regions             uint64 // address
	regionsLen          uint64
	maxPages            uint64
	inverted            uint64 // categories that are asked for by their absence
	all, any, answer    uint64 // categories
}

// scanRegion is struct page_region.
type scanRegion struct{ start, end, _ uint64 } // the last one is its categories

// batch is how many runs of pages are asked for at a time.
const batch = 128

// openPagemap opens /proc/self/pagemap. It gives -1 where that cannot be
// scanned.
func (r *region) openPagemap() (file int) {
	file, err := unix.Open("/proc/self/pagemap", unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return -1
	}
	if _, err := r.findPrivate(file, 0, roundUp(1)); err != nil {
		_ = unix.Close(file) // nothing was written to it
		return -1
	}
	return file
}

// findPrivate fills r.found with the pages between two offsets that are no
// longer those of the file that is mapped there: the kernel copied them when
// they were written to.
func (r *region) findPrivate(pagemap, from, to int) ([]scanRegion, error) {
	base := r.address()
	request := scanRequest{
		start: base + uint64(from), end: base + uint64(to),
		// A region is on the heap, where nothing moves.
		regions: uint64(uintptr(unsafe.Pointer(&r.found))), regionsLen: uint64(len(r.found)),
		inverted: pageIsFile, all: pageIsFile, any: pageIsPresent | pageIsSwapped, answer: pageIsPresent,
	}
	request.size = uint64(unsafe.Sizeof(request))
	n, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(pagemap), pagemapScan, uintptr(unsafe.Pointer(&request)))
	if errno != 0 {
		return nil, fmt.Errorf("scanning for changed pages: %w", errno)
	}
	return r.found[:n], nil
}

func (r *region) address() uint64 {
	return uint64(uintptr(unsafe.Pointer(unsafe.SliceData(r.mapping))))
}

// offsets are where a run of pages begins and ends.
func (r *region) offsets(run scanRegion) (start, end int) {
	base := r.address()
	return int(run.start - base), int(run.end - base)
}

// eachPrivate gives the runs of private pages in the first size bytes, as offsets, until
// yield wants no more. All of them are known afterwards if one batch has room for them.
func (r *region) eachPrivate(pagemap, size int, yield func(start, end int) bool) error {
	end := roundUp(size)
	for from := 0; from < end; {
		found, err := r.findPrivate(pagemap, from, end)
		if err != nil {
			return err
		}
		r.known, r.complete = found, from == 0 && len(found) < batch
		for _, f := range found {
			var start int
			start, from = r.offsets(f)
			if !yield(start, min(from, size)) {
				return nil
			}
		}
		if len(found) < batch {
			return nil
		}
	}
	return nil
}

// scan restores the pages that were written to, by this call or an earlier one:
// a page that was copied once stays private. When far more of them have come
// together than one call writes to, or than can be restored soon, all are dropped, and
// the next call starts again.
func (r *region) scan(image *Image) error {
	const slack = 64 // pages
	page, pages := os.Getpagesize(), 0
	most := (64 << 20) / page
	if r.usual >= 0 {
		most = min(most, 2*r.usual+slack)
	}
	err := r.eachPrivate(image.pagemap, image.size, func(start, end int) bool {
		pages += (end - start + page - 1) / page
		if pages > most {
			return false
		}
		image.restore(r.all, start, end)
		return true
	})
	if err != nil {
		return err
	}
	if pages > most {
		return r.drop(image)
	}
	if r.usual < 0 {
		r.usual = pages
	}
	r.retained = pages * page
	return nil
}
