package main

import (
	"errors"
	"os"
	"runtime/debug"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tetratelabs/wazero/api"

	"github.com/flowhost/flowhost/host"
	"github.com/flowhost/flowhost/run"
)

// What an instance of a Go guest takes of the machine's memory: while its call
// runs, and when it is idle and has served one call; and one of wazero's own.
func BenchmarkInstanceMemory(b *testing.B) {
	const n = 64
	binary := goGuest(b, "flowhost")
	h, call := newHost(b, host.Config{Instances: 2 * n, Memory: 4 << 30}, binary)
	plain := newBare(b, binary, false)
	var busy, idle, own int64
	for b.Loop() {
		warm(b, h, call, 1)
		one := resident(b)
		busy = (warm(b, h, call, n) - one) / (n - 1)
		idle = (resident(b) - one) / (n - 1)
		own = bareMemory(b, plain, n)
	}
	sizes(b, []string{"busy", "idle", "wazero"}, []int64{busy, idle, own})
}

// warm has n calls at the same time, each in an instance of its own, and gives the
// resident memory in the midst of them.
func warm(b *testing.B, h *host.Host, call run.Call, n int) int64 {
	b.Helper()
	const nap = time.Second
	var calls sync.WaitGroup
	for range n {
		calls.Go(func() {
			call := call
			call.Function, call.Input = "nap", []byte(strconv.Itoa(int(nap.Milliseconds())))
			if result, err := h.Invoke(b.Context(), call); err != nil || result.Failure != nil {
				b.Error(err, result.Failure)
			}
		})
	}
	time.Sleep(nap / 2)
	size := resident(b)
	calls.Wait()
	return size
}

// bareMemory is for one of n instances after a call each.
func bareMemory(b *testing.B, plain *bare, n int) int64 {
	b.Helper()
	before := resident(b)
	instances := make([]api.Module, n)
	for i := range instances {
		var err error
		if instances[i], err = plain.instance(b.Context()); err != nil {
			b.Fatal(err)
		}
		plain.input = []byte("0")
		if _, err := instances[i].ExportedFunction("nap").Call(b.Context()); err != nil {
			b.Fatal(err)
		}
	}
	size := (resident(b) - before) / int64(n)
	for _, instance := range instances {
		instance.Close(b.Context())
	}
	return size
}

// resident is the process's proportional share of memory in bytes, without
// garbage (proc(5), smaps_rollup, Pss). Pages of an image count once.
func resident(b *testing.B) int64 {
	b.Helper()
	debug.FreeOSMemory()
	text, err := os.ReadFile("/proc/self/smaps_rollup")
	if err != nil {
		b.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		if rest, ok := strings.CutPrefix(line, "Pss:"); ok {
			kib, err := strconv.ParseInt(strings.Fields(rest)[0], 10, 64)
			if err != nil {
				b.Fatal(err)
			}
			return kib * 1024
		}
	}
	b.Fatal(errors.New("smaps_rollup has no line Pss"))
	return 0
}
