package host_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"runtime"
	"sync"
	"testing"

	"github.com/flowhost/flowhost/host"
)

// numbered is a module that differs from others by its number.
func numbered(n int) []byte { return withCustomSection(noop().bytes(), "n", fmt.Sprint(n)) }

// loaded is how many modules the host has, of which something has run.
func loaded(h *host.Host) int { return len(h.Stats().Modules) }

func TestModulesWithoutUseAreGivenUp(t *testing.T) {
	t.Parallel()
	h := newHost(t, host.Config{ModuleMemory: 1}) // none but those that are used
	var digests []string
	for n := range 5 {
		digests = append(digests, loadBytes(t, h, numbered(n)))
	}
	for range 3 {
		for _, digest := range digests {
			wantOutput(t, invoke(t, h, callOf(digest, "", "1")), "null")
		}
	}
	// The goroutine that has prepared a module is one of its users until it ends.
	for loaded(h) > 0 && t.Context().Err() == nil {
		runtime.Gosched()
	}
	if s := h.Stats(); s.Idle > 0 || s.Memory > 0 {
		t.Errorf("%+v", s)
	}
}

func TestModulesAreGivenUpInTime(t *testing.T) {
	t.Parallel()
	h := newHost(t, host.Config{ModuleTime: 1})
	digest := loadBytes(t, h, noop().bytes())
	wantOutput(t, invoke(t, h, callOf(digest, "", "1")), "null")
	for loaded(h) > 0 && t.Context().Err() == nil {
		runtime.Gosched()
	}
	wantOutput(t, invoke(t, h, callOf(digest, "", "1")), "null")
}

// TestModulesThatChangeAreGivenUp deploys versions of a Go plugin, and is not
// parallel: it measures the heap.
func TestModulesThatChangeAreGivenUp(t *testing.T) {
	const versions = 12
	h := newHost(t, host.Config{ModuleMemory: 48 << 20, Modules: host.Folder(t.TempDir())})
	path := guest(t, "tasks")
	built, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var sizes []uint64
	for n := range versions {
		digest := loadBytes(t, h, withCustomSection(built, "version", fmt.Sprint(n)))
		if r := invoke(t, h, callOf(digest, "echo", "1")); r.Failure != nil {
			t.Fatal(r.Failure)
		}
		if got := loaded(h); got > 4 {
			t.Errorf("%d versions are kept", got)
		}
		runtime.GC()
		runtime.GC()
		var stats runtime.MemStats
		runtime.ReadMemStats(&stats)
		sizes = append(sizes, stats.HeapAlloc>>20)
	}
	t.Logf("heap in MiB: %v", sizes)
	if first, last := sizes[versions/2], sizes[versions-1]; last > first+8 {
		t.Errorf("the heap grows from %d to %d MiB with versions of a module", first, last)
	}
}

// Modules go and come while they are called.
func TestModulesAreGivenUpBetweenCalls(t *testing.T) {
	t.Parallel()
	h := newHost(t, host.Config{ModuleMemory: 4 << 10, Instances: 8, ModuleTime: 1})
	var digests []string
	for n := range 6 {
		digests = append(digests, loadBytes(t, h, numbered(100+n)))
	}
	var callers sync.WaitGroup
	for caller := range 6 {
		callers.Go(func() {
			random := rand.New(rand.NewPCG(1, uint64(caller)))
			for range 60 {
				wantOutput(t, invoke(t, h, callOf(digests[random.IntN(len(digests))], "", "1")), "null")
			}
		})
	}
	callers.Wait()
}

// What has cost a whole budget to refuse is not tried again at once.
func TestBudgetIsSpentOnce(t *testing.T) {
	t.Parallel()
	h := newHost(t, host.Config{CompileTime: 1})
	path := writeFile(t, "plugin.wasm", bomb(t, "loads kept over br_if", 16_000))
	var fault [2]error
	for i := range fault {
		_, fault[i] = h.Inspect(t.Context(), path)
	}
	if fault[0] == nil || fault[1] == nil || fault[0].Error() != fault[1].Error() {
		t.Errorf("%v, then %v", fault[0], fault[1])
	}
}
