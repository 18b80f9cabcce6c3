package host_test

import (
	"context"
	"errors"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/flowhost/flowhost/host"
	"github.com/flowhost/flowhost/run"
)

// statsOf is what the host knows of its only module.
func statsOf(t *testing.T, h *host.Host) host.ModuleStats {
	t.Helper()
	modules := h.Stats().Modules
	if len(modules) != 1 {
		t.Fatalf("%d modules", len(modules))
	}
	return modules[0]
}

// However a call ends, the next one finds the same instance as new.
func TestInstanceIsAsNewAfterEveryEnd(t *testing.T) {
	t.Parallel()
	for _, engine := range []host.Engine{host.Compiler, host.Interpreter} {
		h := newHost(t, host.Config{Engine: engine, Depth: 1000, Limits: run.Limits{Memory: 8 << 16}})
		digest := load(t, h, "testdata/images/instance.wasm")
		ends := []struct {
			function string
			outcome  run.Outcome
			code     string
		}{
			{"returns", run.OutcomeSucceeded, ""},
			{"grows", run.OutcomeSucceeded, ""},
			{"exits", run.OutcomeSucceeded, ""},
			{"traps", run.OutcomeTrapped, run.CodeTrap},
			{"spins", run.OutcomeTimedOut, run.CodeTimeout},
			{"sinks", run.OutcomeTrapped, run.CodeDepth},
		}
		for range 3 {
			for _, end := range ends {
				call := callOf(digest, end.function, "null")
				if end.function == "spins" {
					call.Timeout = 20 * time.Millisecond
				}
				result := invoke(t, h, call)
				if end.code == "" {
					wantOutput(t, result, "null")
				} else {
					wantFailure(t, result, end.outcome, end.code)
				}
			}
		}
		got := statsOf(t, h)
		if got.Made != 1 || got.Reused != 18 || got.Idle != 1 || len(got.Discarded) != 0 {
			t.Errorf("engine %d: %+v", engine, got)
		}
		if !got.Sandbox.WarmedUp || got.Sandbox.Image != 2<<16 || got.Sandbox.Strategy == host.StrategyFresh {
			t.Errorf("engine %d: %+v", engine, got.Sandbox)
		}
	}
}

// What cannot be put back costs the instance, and nothing else.
func TestInstanceThatCannotBeResetIsDiscarded(t *testing.T) {
	t.Parallel()
	h := newHost(t, host.Config{})
	digest := load(t, h, "testdata/images/instance.wasm")
	for range 3 {
		wantOutput(t, invoke(t, h, callOf(digest, "sets", "null")), "null")
		wantOutput(t, invoke(t, h, callOf(digest, "fills", "null")), "null")
		wantOutput(t, invoke(t, h, callOf(digest, "returns", "null")), "null")
	}
	got := statsOf(t, h)
	discarded := int64(0)
	for reason, n := range got.Discarded {
		if !strings.Contains(reason, "table") && !strings.Contains(reason, "maximum") {
			t.Errorf("discarded because %s", reason)
		}
		discarded += n
	}
	if discarded != 6 || got.Made != 7 || got.Reused != 3 {
		t.Errorf("%+v", got)
	}
}

func TestModulesThatNoImageCanBeMadeOf(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{
		"vector":   "v128",
		"changing": "tables",
		"trapping": "initialization fails: unreachable",
	} {
		h := newHost(t, host.Config{})
		path := "testdata/images/" + name + ".wasm"
		digest := load(t, h, path)
		for range 3 {
			if result := invoke(t, h, callOf(digest, "run", "null")); name == "trapping" {
				wantFailure(t, result, run.OutcomeTrapped, run.CodeTrap)
			} else {
				wantOutput(t, result, "null")
			}
		}
		got := statsOf(t, h)
		if got.Sandbox.Strategy != host.StrategyFresh || !strings.Contains(got.Sandbox.Reason, want) || got.Idle != 0 || got.Reused != 0 {
			t.Errorf("%s: %+v", name, got)
		}
		box, err := h.Sandbox(t.Context(), path)
		if err != nil || box.Strategy != host.StrategyFresh {
			t.Errorf("%s: %+v, %v", name, box, err)
		}
	}
}

func TestWarmUpThatBreaksIsLeftOut(t *testing.T) {
	t.Parallel()
	h := newHost(t, host.Config{})
	digest := load(t, h, "testdata/images/stumbling.wasm")
	for range 3 {
		wantOutput(t, invoke(t, h, callOf(digest, "run", "null")), "null")
	}
	if got := statsOf(t, h); got.Sandbox.WarmedUp || got.Sandbox.Strategy == host.StrategyFresh || got.Reused != 3 {
		t.Errorf("%+v", got)
	}
}

func TestSandboxIsMeasured(t *testing.T) {
	t.Parallel()
	h := newHost(t, host.Config{})
	box, err := h.Sandbox(t.Context(), guest(t, "tasks"))
	if err != nil {
		t.Fatal(err)
	}
	if box.Init <= 0 || box.Image <= 0 || box.Checks.Loops == 0 || box.Checks.Functions == 0 {
		t.Errorf("%+v", box)
	}
	if runtime.GOOS == "linux" && (box.Strategy != host.StrategyCopyOnWrite || len(box.Ways) < 2 || box.Ways[0].Cost > box.Ways[1].Cost) {
		t.Errorf("%+v", box)
	}
	var fault *host.ModuleError
	if _, err := h.Sandbox(t.Context(), writeFile(t, "x.wasm", []byte("x"))); !errors.As(err, &fault) {
		t.Errorf("no module: %v", err)
	}
}

// Calls at the same time have an instance each, and all of them come from one
// image.
func TestInstancesOfOneImage(t *testing.T) {
	t.Parallel()
	h := newHost(t, host.Config{Instances: 8})
	digest := load(t, h, guest(t, "tasks"))
	wantOutput(t, invoke(t, h, callOf(digest, "counter", "1")), "1") // so that the others do not wait for the module
	var calls sync.WaitGroup
	for range 200 {
		calls.Go(func() {
			result, err := h.Invoke(t.Context(), callOf(digest, "counter", "1"))
			if err != nil || string(result.Output) != "1" {
				t.Errorf("%s %v, %v", result.Output, result.Failure, err)
			}
		})
	}
	calls.Wait()
	got := statsOf(t, h)
	if got.Made > 8 || got.Made != int64(got.Idle) || got.Made+got.Reused < 200 {
		t.Errorf("%+v", got)
	}
	if stats := h.Stats(); stats.Running != 0 || stats.Waiting != 0 || stats.Memory <= 0 || stats.Memory > int64(got.Idle)*got.Sandbox.Image {
		t.Errorf("%+v", stats)
	}
}

func TestIdleInstancesMakeRoom(t *testing.T) {
	t.Parallel()
	small, large := "testdata/images/instance.wasm", guest(t, "tasks")
	h := newHost(t, host.Config{Memory: 16 << 20, Idle: 1})
	for range 3 {
		for _, path := range []string{small, large} {
			function := "returns"
			if path == large {
				function = "nothing"
			}
			result := invoke(t, h, callOf(load(t, h, path), function, "1"))
			if result.Outcome != run.OutcomeSucceeded {
				t.Fatalf("%s: %v", path, result.Failure)
			}
			if idle := h.Stats().Idle; idle != 1 {
				t.Errorf("%d instances are idle, want 1", idle)
			}
		}
	}
	none := newHost(t, host.Config{Idle: -1})
	invoke(t, none, callOf(load(t, none, small), "returns", "1"))
	if idle := none.Stats().Idle; idle != 0 {
		t.Errorf("%d instances are idle, want none", idle)
	}
}

func TestIdleInstancesAreGivenUp(t *testing.T) {
	path := "testdata/images/instance.wasm"
	synctest.Test(t, func(t *testing.T) {
		h, err := host.New(t.Context(), host.Config{IdleTime: time.Minute})
		if err != nil {
			t.Fatal(err)
		}
		digest := load(t, h, path)
		call := callOf(digest, "returns", "1")
		invoke(t, h, call)
		time.Sleep(40 * time.Second)
		invoke(t, h, call)
		time.Sleep(40 * time.Second)
		if idle := h.Stats().Idle; idle != 1 {
			t.Errorf("%d instances are idle 40 s after a call", idle)
		}
		time.Sleep(21 * time.Second)
		synctest.Wait()
		if stats := h.Stats(); stats.Idle != 0 || stats.Memory != 0 {
			t.Errorf("a minute after the last call: %+v", stats)
		}
		if result := invoke(t, h, call); result.Outcome != run.OutcomeSucceeded {
			t.Errorf("the call after that: %v", result.Failure)
		}
		if err := h.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
}
