package memory

import (
	"errors"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"

	"golang.org/x/sys/unix"
)

// A page of a private mapping becomes private in a page fault, which the kernel counts
// for the thread that takes it, whether the guest writes, or a system call that the host
// makes for it. So a call whose thread took no page fault has written to no page that was
// not private before, and those are known from the scan after an earlier call.
//
// That holds because only the goroutine of the call writes to a guest's memory, and stays
// on its thread from watch to the reset. While it waits, it may leave the thread: pause
// compares the counts so far, and resume begins with those of the next thread. Between the
// two nobody writes.

// watchman is what all memories know of the kernel's count.
type watchman struct {
	quiet atomic.Uint64 // resets that relied on it
	blind atomic.Bool   // an audit has found a page that no fault had announced
}

var process watchman

// auditEvery is how many resets that rely on the count come with one that does not.
const auditEvery = 1000

// errUnannounced fails a reset. What it is about has been undone, but an earlier reset
// may have missed it.
var errUnannounced = errors.New("a page was written to that no page fault of the call announced")

// watch keeps the goroutine on its thread and notes the thread's page faults.
func (r *region) watch(image *Image) {
	if way, _ := image.Way(); way == WayWatch {
		r.beginWatch()
	}
}

func (r *region) beginWatch() {
	r.paused = false
	if !r.complete || r.watched || r.man.blind.Load() {
		return
	}
	runtime.LockOSThread()
	r.watched = true
	r.faults, r.counted = threadFaults()
}

// release lets the goroutine go to other threads, if it was watched.
func (r *region) release() {
	if r.watched {
		r.watched = false
		runtime.UnlockOSThread()
	}
}

// pause releases the goroutine, and remembers whether the call has taken no page fault.
func (r *region) pause() {
	if !r.watched {
		return
	}
	faults, counted := threadFaults()
	r.paused = counted && r.counted && faults == r.faults
	r.release()
}

// resume watches on after a pause. After a page fault there is no need: the reset scans.
func (r *region) resume() {
	if r.paused {
		r.beginWatch()
	}
}

// reset by WayWatch restores the pages that are known, if there can be no others.
func (r *region) resetWatched(image *Image) error {
	if !r.watched || !r.counted {
		return r.scan(image)
	}
	faults, counted := threadFaults()
	r.release()
	if !counted || faults != r.faults {
		return r.scan(image)
	}
	if r.man.quiet.Add(1)%auditEvery == 0 {
		return r.audit(image)
	}
	for _, run := range r.known {
		start, end := r.offsets(run)
		image.restore(r.all, start, min(end, image.size))
	}
	return nil
}

// audit scans although no page is expected beside those that are known. It fails, and
// ends the reliance for all memories, when there is one.
func (r *region) audit(image *Image) error {
	known := slices.Clone(r.known)
	for i, run := range known {
		start, end := r.offsets(run)
		known[i] = scanRegion{start: uint64(start), end: uint64(end)}
	}
	unknown := false
	err := r.eachPrivate(image.pagemap, image.size, func(start, end int) bool {
		unknown = unknown || !covered(known, uint64(start), uint64(end))
		return true
	})
	if err != nil {
		return err
	}
	if err := r.scan(image); err != nil || !unknown {
		return err
	}
	r.man.blind.Store(true)
	return errUnannounced
}

// covered reports whether runs, which are in order, contain all from start to end.
func covered(runs []scanRegion, start, end uint64) bool {
	for _, run := range runs {
		if run.start <= start && start < run.end {
			start = run.end
		}
	}
	return start >= end
}

// threadFaults is how many page faults the calling thread has taken; false where that
// cannot be known.
func threadFaults() (faults int64, counted bool) {
	var usage unix.Rusage
	if unix.Getrusage(unix.RUSAGE_THREAD, &usage) != nil {
		return 0, false
	}
	return usage.Minflt + usage.Majflt, true
}

// countsFaults reports whether this kernel counts the first write to a page, in each of
// the ways in which there can be one.
var countsFaults = sync.OnceValue(findCountsFaults)

func findCountsFaults() bool {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	page := roundUp(1)
	file, err := unix.MemfdCreate("flowhost-test", unix.MFD_CLOEXEC)
	if err != nil {
		return false
	}
	defer unix.Close(file)
	writes := firstWrites(file, page)
	size := 2 * len(writes) * page
	if _, err := unix.Pwrite(file, make([]byte, size/2), int64(size/2)); err != nil { // before it are holes
		return false
	}
	memory, err := unix.Mmap(file, 0, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE)
	if err != nil {
		return false
	}
	defer func() { _ = unix.Munmap(memory) }()
	for i := range 2 * len(writes) {
		at := memory[i*page : (i+1)*page]
		write := writes[i%len(writes)]
		if write.prepare != nil && !write.prepare(at) {
			return false
		}
		before, ok := threadFaults()
		wrote := write.write(at)
		if after, counted := threadFaults(); !ok || !counted || !wrote || after == before {
			return false
		}
	}
	return true
}

// firstWrite is a way to make a page private.
type firstWrite struct {
	prepare func(page []byte) bool // before the count begins; nil for nothing
	write   func(page []byte) bool
}

// firstWrites needs a file from which a page can be read.
func firstWrites(file, page int) []firstWrite {
	store := func(page []byte) bool { page[1]++; return true }
	receive := func(at []byte) bool {
		n, err := unix.Pread(file, at[:page/2], int64(page))
		return err == nil && n == page/2
	}
	look := func(page []byte) bool { return page[0] == 0 }
	dropped := func(page []byte) bool {
		page[2]++
		return unix.Madvise(page, unix.MADV_DONTNEED) == nil
	}
	return []firstWrite{
		{nil, store},
		{look, store},
		{dropped, store},
		{nil, receive},
		{look, receive},
		{dropped, receive},
	}
}
