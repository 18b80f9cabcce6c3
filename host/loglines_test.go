package host_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/flowhost/flowhost/host"
	"github.com/flowhost/flowhost/run"
)

// followed is the lines that a host handed out, by task.
type followed struct {
	mu    sync.Mutex
	lines map[string][]run.LogLine
	times map[string][]time.Time
}

func (f *followed) take(call *run.Call, at time.Time, line run.LogLine) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.lines == nil {
		f.lines, f.times = map[string][]run.LogLine{}, map[string][]time.Time{}
	}
	f.lines[call.Task] = append(f.lines[call.Task], line)
	f.times[call.Task] = append(f.times[call.Task], at)
}

// What followers get is what the result holds, whatever wrote it: an SDK, what a
// program prints, the trace of a trap, a module that breaks while it is
// initialized.
func TestLinesAreThoseOfTheResult(t *testing.T) {
	t.Parallel()
	var got followed
	h := newHost(t, host.Config{Lines: got.take})
	tasks, command := load(t, h, guest(t, "tasks")), load(t, h, guest(t, "command"))
	trapping := load(t, h, "testdata/images/trapping.wasm")
	var calls sync.WaitGroup
	for i, c := range []run.Call{
		callOf(tasks, "logs", "1"),
		callOf(tasks, "panics", "1"),
		callOf(tasks, "nothing", "1"),
		callOf(command, "main", `"exit 75"`),
		callOf(trapping, "run", "null"),
	} {
		for n := range 4 {
			c := c
			c.Task = fmt.Sprintf("%d.%d", i, n)
			calls.Go(func() {
				started := time.Now()
				result, err := h.Invoke(t.Context(), c)
				if err != nil {
					t.Errorf("%s: %v", c.Function, err)
				}
				got.mu.Lock()
				defer got.mu.Unlock()
				if diff := cmp.Diff(result.Log.Lines, got.lines[c.Task]); diff != "" || (len(result.Log.Lines) == 0) != (c.Function == "nothing") {
					t.Errorf("%s (-result +followed): %s", c.Function, diff)
				}
				for _, at := range got.times[c.Task] {
					if at.Before(started) || at.After(time.Now()) {
						t.Errorf("%s: a line of %s, the call began at %s", c.Function, at, started)
					}
					started = at
				}
			})
		}
	}
	calls.Wait()
}

// A line is there while the guest still runs: this one would continue for hours.
func TestLinesComeWhileTheGuestRuns(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancelCause(t.Context())
	defer cancel(nil)
	h := newHost(t, host.Config{Lines: func(_ *run.Call, _ time.Time, line run.LogLine) {
		if line.Message == "line 2" {
			cancel(run.ErrCanceled)
		}
	}})
	result, err := h.Invoke(ctx, callOf(load(t, h, guest(t, "tasks")), "floods", "2000000000"))
	if err != nil {
		t.Fatal(err)
	}
	wantFailure(t, result, run.OutcomeCanceled, run.CodeCanceled)
}

func TestLinesStayWithinTheLimit(t *testing.T) {
	t.Parallel()
	const limit, written = 4 << 10, 10_000
	var got followed
	h := newHost(t, host.Config{Limits: run.Limits{Log: limit}, Lines: got.take})
	digest := load(t, h, guest(t, "tasks"))
	invoke(t, h, callOf(digest, "floods", fmt.Sprint(written)))
	lines := got.lines["price"]
	next, left, cost := 0, 0, 0
	for _, l := range lines {
		if strings.HasPrefix(l.Message, "lines were left out") {
			if _, err := fmt.Sscanf(string(l.Fields), `{"lines":%d}`, &left); err != nil || l.Level != "warn" {
				t.Fatalf("%+v: %v", l, err)
			}
			next += left
			continue
		}
		if want := fmt.Sprintf("line %d", next); l.Message != want {
			t.Fatalf("%q where %q is next", l.Message, want)
		}
		next++
		cost += len(l.Message) + 32
	}
	if next != written || left == 0 || cost > limit || cost < limit*9/10 {
		t.Errorf("%d lines, %d left out, %d bytes of %d", len(lines), left, cost, limit)
	}
}
