package host

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/flowhost/flowhost/run"
)

func TestClockMovesByReadsAndSleepsOnly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		scheduled := time.Date(2026, 10, 25, 1, 0, 0, 0, time.UTC)
		var inv invocation
		c := &inv.clock
		c.set(scheduled, 0)
		time.Sleep(time.Hour) // of the host
		sec, nsec := c.walltime()
		if got := time.Unix(sec, int64(nsec)).Sub(scheduled); got != clockStep {
			t.Errorf("the wall clock begins %v after the nominal time", got)
		}
		before := time.Now()
		inv.sleep(t.Context(), 3*time.Second)
		if slept := time.Since(before); slept != 3*time.Second {
			t.Errorf("the host waited %v", slept)
		}
		if got := time.Duration(c.nanotime()); got != 3*time.Second+2*clockStep {
			t.Errorf("the monotonic clock shows %v", got)
		}
	})
}

func TestSleepUnwindsTheGuestWhenTheCallEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		defer func() {
			if r := recover(); r != errInterrupted || ctx.Err() == nil {
				t.Errorf("recovered %v", r)
			}
		}()
		new(invocation).sleep(ctx, time.Hour)
		t.Error("sleep came back")
	})
}

func TestClockWithoutANominalTime(t *testing.T) {
	t.Parallel()
	var c clock
	c.set(time.Time{}, 0)
	if sec, _ := c.walltime(); sec != 0 {
		t.Errorf("begins at %d", sec)
	}
}

func TestRandomDependsOnWhatACallIs(t *testing.T) {
	t.Parallel()
	calls := []run.Call{
		{Run: "a", Task: "b", Key: "c"},
		{Run: "ab", Task: "", Key: "c"},
		{Run: "a", Task: "bc", Key: ""},
		{Run: "", Task: "a", Key: "bc"},
	}
	seen := map[uint64]int{}
	for i, call := range calls {
		random := randomOf(&call)
		first := random.seeded().Uint64()
		if again := random.seeded().Uint64(); again != first {
			t.Errorf("call %d: %d, then %d", i, first, again)
		}
		if j, ok := seen[first]; ok {
			t.Errorf("calls %d and %d see the same numbers", i, j)
		}
		seen[first] = i
	}
}
