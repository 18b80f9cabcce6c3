package host_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/flowhost/flowhost/host"
	"github.com/flowhost/flowhost/host/internal/memory"
	"github.com/flowhost/flowhost/run"
)

// Ways in which memory of a guest is written to, by itself or by the host for it. Each
// writes to a wasm page of its own, and all of them to the first one.
var writes = []struct {
	name string
	body func(at int) []byte
	ends run.Outcome
}{
	{"store", func(at int) []byte { return putWord(at, 1) }, run.OutcomeSucceeded},
	{"random_get", func(at int) []byte { return ask(200, spyRandom, at, 64) }, run.OutcomeSucceeded},
	{"clock_time_get", func(at int) []byte { return ask(200, spyClock, 1, at) }, run.OutcomeSucceeded},
	{"read", func(at int) []byte { return ask(200, spyRead, 3, at, 4096) }, run.OutcomeSucceeded},
	{"path_open and fd_read", func(at int) []byte {
		return concat(put(300, "in/secret"), putWord(320, at), putWord(324, 100),
			ask(200, spyPathOpen, 3, 0, 300, 9, 0, 2, 2, 0, 340), ask(204, spyFdRead, 4, 320, 1, 344))
	}, run.OutcomeSucceeded},
	{"poll_oneoff, asleep", func(at int) []byte { // 200 µs
		return concat(putWord(400, 5), putWord(424, 200_000), ask(200, spyPoll, 400, at, 1, at+64))
	}, run.OutcomeSucceeded},
	{"memory.fill", func(at int) []byte { return fillMemory(at, 9, 20_000) }, run.OutcomeSucceeded},
	{"memory.copy", func(at int) []byte {
		return concat(putWord(500, 7), number(at), number(500), number(4), []byte{0xfc, 10, 0, 0})
	}, run.OutcomeSucceeded},
	{"memory.grow", func(at int) []byte {
		return concat(number(1), []byte{opMemoryGrow, 0, opDrop}, putWord(at, 1), putWord(pagesOfWrites<<16, 1))
	}, run.OutcomeSucceeded},
	{"trap", func(at int) []byte { return concat(putWord(at, 1), []byte{opUnreachable}) }, run.OutcomeTrapped},
	{"deadline", func(at int) []byte {
		return concat(putWord(at, 1), []byte{opLoop, noBlockType, opBr, 0, opEnd})
	}, run.OutcomeTimedOut},
}

const (
	spyPoll       = spyShouldStop + 1
	pagesOfWrites = 16
)

func fillMemory(at, value, length int) []byte {
	return concat(number(at), number(value), number(length), []byte{0xfc, 11, 0})
}

// TestNoCallSeesWritesOfAnother has each call look at all that earlier ones may have
// written to, in an instance that goes back to its image in each of the ways. The first
// time each page is clean, and later the kernel has no page fault to report.
func TestNoCallSeesWritesOfAnother(t *testing.T) {
	t.Parallel()
	i32s := func(n int) []byte { return []byte{i32, i32, i32, i32, i32, i32}[:n] }
	p := program{
		imports: append(spyImports(false), importEntry{"wasi_snapshot_preview1", "poll_oneoff", signature{i32s(4), []byte{i32}}}),
		pages:   pagesOfWrites,
	}
	look := number(0)
	for at := range 200 { // the first page, where arguments and results are
		look = concat(look, number(4*at), []byte{0x28, 2, 0, 0x72})
	}
	for n := range writes {
		for _, at := range []int{0, 64} {
			look = concat(look, number((n+1)<<16+at), []byte{0x28, 2, 0, 0x72})
		}
	}
	p.functions = append(p.functions, functionEntry{"look", taskFunction, look})
	for n, w := range writes {
		body := concat(w.body((n+1)<<16), number(0))
		p.functions = append(p.functions, functionEntry{fmt.Sprint("write", n), taskFunction, body})
	}
	module := p.bytes()
	for _, way := range []memory.Way{memory.WayWatch, memory.WayScan, memory.WayDrop, memory.WayCopy} {
		t.Run(way.String(), func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			if err := os.WriteFile(filepath.Join(dir, "secret"), []byte("of a call"), 0o600); err != nil {
				t.Fatal(err)
			}
			h := newHost(t, host.Config{})
			digest := loadBytes(t, h, module)
			wantOutput(t, invoke(t, h, callOf(digest, "look", "1")), "null")
			chooseWay(t, h, digest, way)
			for range 4 {
				for n, w := range writes {
					call := callOf(digest, fmt.Sprint("write", n), "1")
					call.Grants = run.Grants{Files: []run.FileGrant{{Folder: dir, Path: ".", Guest: "/in"}}}
					if w.ends == run.OutcomeTimedOut {
						call.Timeout = 20 * time.Millisecond
					}
					if got := invoke(t, h, call); got.Outcome != w.ends {
						t.Fatalf("%s: %s %v", w.name, got.Outcome, got.Failure)
					}
					if got := invoke(t, h, callOf(digest, "look", "1")); got.Outcome != run.OutcomeSucceeded {
						t.Fatalf("after %s: %v", w.name, got.Failure)
					}
				}
			}
			if got := statsOf(t, h); got.Made > 2 { // the time of a call may be up before it begins
				t.Errorf("%d instances, %v", got.Made, got.Discarded)
			}
		})
	}
}

// chooseWay has a module's instances go back in a way that this machine has.
func chooseWay(t *testing.T, h *host.Host, digest string, way memory.Way) {
	t.Helper()
	for _, m := range h.Stats().Modules {
		for _, known := range m.Sandbox.Ways {
			if m.Digest == digest && known.Name == way.String() {
				host.ChooseWay(h, digest, way)
			}
		}
	}
}
