package memory

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"os"
	"runtime"
	"testing"

	"golang.org/x/sys/unix"
)

// watched is a memory of 32 pages, every second one zero, that goes back by WayWatch,
// and whose private pages are known. It gives nil where the kernel does not count.
func watched(t *testing.T) (*Memory, *region, *Image) {
	t.Helper()
	m := New(8 * wasmPage)
	t.Cleanup(func() { must(t, m.Close()) })
	content := m.Grow(2 * wasmPage)
	page := os.Getpagesize()
	for at := 0; at < len(content); at += 2 * page {
		content[at] = 1
	}
	image := freeze(t, m)
	r, ok := m.backing.(*region)
	if !ok || image.pagemap < 0 || !countsFaults() {
		return nil, nil, nil
	}
	r.man = new(watchman) // whatever other tests do to theirs
	image.Choose(WayWatch)
	m.Bytes()[5*page] = 1
	must(t, m.Reset())
	return m, r, image
}

// quietly makes calls until one was reset without a scan. The test's thread may take
// page faults of Go's runtime in any of them.
func quietly(t *testing.T, m *Memory, r *region, call func()) {
	t.Helper()
	for before, tries := r.man.quiet.Load(), 0; r.man.quiet.Load() == before; tries++ {
		if tries == 1000 {
			t.Fatal("each call of a thousand took a page fault")
		}
		m.Watch()
		call()
		must(t, m.Reset())
	}
}

// elsewhere lets the goroutine of a call wait, while another one has its thread.
func elsewhere(m *Memory) {
	m.Pause()
	done := make(chan struct{})
	go func() { runtime.Gosched(); close(done) }()
	<-done
	m.Resume()
}

// TestFirstWritesAreCounted has each way of the self-test tried, on a page of a file
// and on a hole.
func TestFirstWritesAreCounted(t *testing.T) {
	t.Parallel()
	if !countsFaults() {
		t.Log("this kernel does not count them")
		return
	}
	for range 50 {
		if !findCountsFaults() {
			t.Fatal("counted, and then not")
		}
	}
}

// A call writes to a page for the first time, in every way, and to a known one too. The
// page is one of a file, a hole, seen or not, beyond the image, or given back before.
func TestWatchedResetUndoesFirstWrites(t *testing.T) {
	t.Parallel()
	m, r, image := watched(t)
	if m == nil {
		return
	}
	want := bytes.Clone(m.Bytes())
	page := os.Getpagesize()
	file, err := os.CreateTemp(t.TempDir(), "")
	must(t, err)
	defer file.Close()
	if _, err := file.Write(bytes.Repeat([]byte("x"), 3*page)); err != nil {
		t.Fatal(err)
	}
	pipeEnd, fill, err := os.Pipe()
	must(t, err)
	defer pipeEnd.Close()
	defer fill.Close()
	var seen byte
	ways := map[string]func(memory []byte, at int){
		"store":           func(memory []byte, at int) { memory[at+7] = 9 },
		"load and store":  func(memory []byte, at int) { seen += memory[at]; memory[at+7] = 9 },
		"copy over pages": func(memory []byte, at int) { copy(memory[at:at+3*page], want[page:]) },
		"clear":           func(memory []byte, at int) { clear(memory[at : at+page]) },
		"read of a file": func(memory []byte, at int) {
			if _, err := file.ReadAt(memory[at:at+page], 0); err != nil {
				t.Error(err)
			}
		},
		"read of a pipe that another goroutine fills later": func(memory []byte, at int) {
			go func() {
				runtime.Gosched()
				_, _ = fill.Write([]byte("xyz"))
			}()
			if n, err := pipeEnd.Read(memory[at : at+3]); n == 0 || err != nil {
				t.Error(n, err)
			}
		},
		"random numbers of the kernel": func(memory []byte, at int) {
			if _, err := unix.Getrandom(memory[at:at+100], 0); err != nil {
				t.Error(err)
			}
		},
		"collections and other goroutines meanwhile": func(memory []byte, at int) {
			runtime.GC()
			done := make(chan struct{})
			go func() { runtime.Gosched(); close(done) }()
			<-done
			runtime.Gosched()
			memory[at] ^= 0xff
		},
		"growth": func(_ []byte, at int) {
			grown := m.Grow(4 * wasmPage)
			grown[3*wasmPage] = 1
			grown[at] = 3
		},
		"pause at the end":      func(memory []byte, at int) { memory[at] = 9; m.Pause() },
		"before a pause":        func(memory []byte, at int) { memory[at] = 9; elsewhere(m); memory[5*page] = 9 },
		"after a pause":         func(memory []byte, at int) { elsewhere(m); memory[at] = 9 },
		"between pauses":        func(memory []byte, at int) { elsewhere(m); memory[at] = 9; elsewhere(m) },
		"before and after them": func(memory []byte, at int) { memory[at] = 9; elsewhere(m); memory[at] = 8; elsewhere(m); memory[0] = 7 },
		"a page given back": func(memory []byte, at int) {
			memory[at] = 9
			must(t, unix.Madvise(memory[at:at+page], unix.MADV_DONTNEED))
			memory[at+1] = 8
		},
		"an end without a reset": func(memory []byte, at int) { m.Watch(); memory[at] = 1; m.Watch() },
	}
	for name, write := range ways {
		for target := range 32 {
			if name == "copy over pages" && target > 28 {
				continue
			}
			m.Watch()
			m.Bytes()[5*page] = byte(target)
			write(m.Bytes(), target*page)
			must(t, m.Reset())
			if r.watched {
				t.Fatalf("%s: the goroutine is still bound to its thread", name)
			}
			if got := m.Bytes(); !bytes.Equal(got, want) {
				t.Fatalf("%s, page %d: not undone", name, target)
			}
			if target%8 == 7 { // all pages are clean again
				must(t, r.drop(image))
			}
			quietly(t, m, r, func() { m.Bytes()[5*page] = 77; elsewhere(m); m.Bytes()[5*page] = 78 })
			if got := m.Bytes(); !bytes.Equal(got, want) {
				t.Fatalf("%s, page %d: a quiet call was not undone", name, target)
			}
		}
	}
	_ = seen
}

// Any mixture of calls, on changing threads.
func TestWatchedResetsOfAnyCalls(t *testing.T) {
	t.Parallel()
	m, r, _ := watched(t)
	if m == nil {
		return
	}
	want := bytes.Clone(m.Bytes())
	random := rand.New(rand.NewPCG(5, 6))
	for round := range 3000 {
		done := make(chan struct{})
		go func() { // each call has a goroutine of its own
			defer close(done)
			m.Watch()
			for range random.IntN(3) {
				if random.IntN(4) == 0 {
					elsewhere(m)
				}
				if random.IntN(4) == 0 {
					scribble(random, m.Grow(2*wasmPage+random.IntN(3)*wasmPage), random.IntN(20))
				} else {
					scribble(random, m.Bytes()[5*os.Getpagesize():][:100], 3)
				}
			}
			if err := m.Reset(); err != nil {
				t.Error(err)
			}
		}()
		<-done
		if !bytes.Equal(m.Bytes(), want) {
			t.Fatalf("round %d: the memory is not as it was", round)
		}
	}
	if r.man.quiet.Load() == 0 {
		t.Error("each reset scanned")
	}
}

// A thread other than the call's writes to the memory, which nothing in this program may
// do. The next audit finds it, undoes it, and nobody relies on the count again.
func TestAuditFindsWritesOfOthers(t *testing.T) {
	t.Parallel()
	m, r, image := watched(t)
	if m == nil {
		return
	}
	want := bytes.Clone(m.Bytes())
	page := os.Getpagesize()
	at, found := 0, error(nil)
	for tries := 0; found == nil; tries++ { // a fault of the runtime's own has a reset find it before
		if tries == 1000 {
			t.Fatal("no audit has found it")
		}
		quietly(t, m, r, func() {
			at = (at + page) % len(want) // a call that was scanned has made its page known
			done := make(chan struct{})
			go func() { m.Bytes()[at] = 9; close(done) }()
			<-done
		})
		if m.Bytes()[at] != 9 {
			must(t, r.drop(image)) // all pages are known by now
			continue
		}
		r.man.quiet.Store(auditEvery - 1)
		m.Watch()
		found = m.Reset()
	}
	if !errors.Is(found, errUnannounced) || !bytes.Equal(m.Bytes(), want) {
		t.Errorf("%v; undone: %v", found, bytes.Equal(m.Bytes(), want))
	}
	m.Watch()
	if r.watched {
		t.Error("the count is still relied on")
	}
	m.Bytes()[9*page] = 9
	must(t, m.Reset())
	if !bytes.Equal(m.Bytes(), want) {
		t.Error("resets no longer scan")
	}
}

// Only a scan in one batch knows all pages, and no others may be known.
func TestPagesAreKnownCompletely(t *testing.T) {
	t.Parallel()
	page := os.Getpagesize()
	m := New(3 * batch * page)
	t.Cleanup(func() { must(t, m.Close()) })
	m.Grow(3 * batch * page)
	image := freeze(t, m)
	r, ok := m.backing.(*region)
	if !ok || image.pagemap < 0 {
		return
	}
	image.Choose(WayWatch)
	for _, runs := range []int{1, batch - 1, batch, batch + 1, 3} {
		must(t, r.drop(image))
		if r.complete {
			t.Error("known after a drop")
		}
		for n := range runs {
			m.Bytes()[2*n*page] = 1
		}
		must(t, m.Reset())
		if want := runs < batch; r.complete != want {
			t.Errorf("%d runs: complete is %v", runs, r.complete)
		}
	}
	must(t, r.adopt(t.Context(), image, image.size))
	if r.complete {
		t.Error("known after an adoption")
	}
}

func TestCovered(t *testing.T) {
	t.Parallel()
	runs := []scanRegion{{start: 2, end: 4}, {start: 4, end: 6}, {start: 8, end: 9}}
	for _, c := range []struct {
		start, end uint64
		want       bool
	}{{2, 6, true}, {3, 5, true}, {8, 9, true}, {1, 3, false}, {5, 7, false}, {5, 9, false}, {6, 8, false}, {9, 10, false}} {
		if got := covered(runs, c.start, c.end); got != c.want {
			t.Errorf("%d to %d: %v", c.start, c.end, got)
		}
	}
}
