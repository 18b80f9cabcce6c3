package virtual

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/flowhost/flowhost/flows"
	"github.com/flowhost/flowhost/run"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var epoch = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

func load(t testing.TB, source string) *flows.Set {
	t.Helper()
	file := filepath.Join(t.TempDir(), "test.hcl")
	if err := os.WriteFile(file, []byte(source), 0o600); err != nil {
		t.Fatal(err)
	}
	set, diags := flows.Load(t.Context(), []string{file}, flows.Options{})
	if diags.HasErrors() {
		t.Fatal(diags)
	}
	return set
}

// lasts is a call that succeeds after a while.
func lasts(d time.Duration) ScriptedCall {
	return ScriptedCall{Takes: d, Result: run.Result{Outcome: run.OutcomeSucceeded, Output: json.RawMessage(`"ok"`)}}
}

func fails(retryable bool) ScriptedCall {
	return ScriptedCall{Result: failed(&run.Failure{Outcome: run.OutcomeFailed, Code: "x", Message: "no", Retryable: retryable})}
}

// stage is a Runner that keeps what has ended.
type stage struct {
	*Runner
	t     testing.TB
	ended []*run.Record
}

func open(t testing.TB, c Config, source string) *stage {
	t.Helper()
	s := &stage{t: t}
	c.Finished = func(r *run.Record) { s.ended = append(s.ended, r) }
	if c.Start.IsZero() {
		c.Start = epoch
	}
	s.Runner = New(t.Context(), c)
	t.Cleanup(s.Close)
	if err := s.Deploy(t.Context(), load(t, source)); err != nil {
		t.Fatal(err)
	}
	return s
}

func (s *stage) submit(flow string) run.ID {
	s.t.Helper()
	receipt, err := s.Submit(s.t.Context(), run.Request{Flow: flow, Trigger: run.Trigger{Kind: run.TriggerManual, Time: s.Now()}})
	if err != nil {
		s.t.Fatal(err)
	}
	return receipt.Run
}

// play lets time pass until so many runs have ended.
func (s *stage) play(runs int) {
	s.t.Helper()
	if err := s.Until(s.t.Context(), epoch.AddDate(1, 0, 0), func() bool { return len(s.ended) >= runs }); err != nil {
		s.t.Fatal(err)
	}
	if len(s.ended) < runs {
		s.t.Fatalf("%d runs ended, %d should have", len(s.ended), runs)
	}
}

// story is what happened, without ids.
func (s *stage) story() []string {
	var lines []string
	for _, r := range s.ended {
		lines = append(lines, fmt.Sprintf("%s %s %s", r.Flow, r.State, time.Duration(*r.DurationMS*1e6)))
		for _, t := range r.Tasks {
			line := fmt.Sprintf("  %s %s x%d", t.Task, t.State, t.Attempts)
			if t.StartedAt != nil {
				line += fmt.Sprintf(" %s..%s", t.StartedAt.Sub(epoch), t.FinishedAt.Sub(epoch))
			}
			if t.Error != nil {
				line += " " + string(t.Error.Outcome)
			}
			lines = append(lines, line)
		}
	}
	return lines
}

func (s *stage) want(story ...string) {
	s.t.Helper()
	if diff := cmp.Diff(story, s.story()); diff != "" {
		s.t.Errorf("(-want +got):\n%s", diff)
	}
}

const pair = `
flow "f" {
  task "a" {
    plugin  = "./p.wasm"
    timeout = "1h"
    retry {
      attempts = 4
      delay    = "10m"
      max      = "1h"
    }
  }
  task "b" {
    plugin = "./p.wasm"
    input  = task.a.output
  }
}`

func TestHoursPass(t *testing.T) {
	t.Parallel()
	s := open(t, Config{Script: func(c *run.Call, _ time.Time) ScriptedCall {
		switch {
		case c.Task == "b":
			return lasts(2 * time.Minute)
		case c.Attempt == 1:
			return ScriptedCall{Hangs: true}
		case c.Attempt == 2:
			return fails(true)
		}
		return lasts(59 * time.Minute)
	}}, pair)
	s.submit("f")
	began := time.Now()
	s.play(1)
	// An hour until the time is up, 10 minutes, nothing, 20 minutes, 59 minutes.
	s.want("f succeeded 2h31m0s", "  a succeeded x3 0s..2h29m0s", "  b succeeded x1 2h29m0s..2h31m0s")
	if took := time.Since(began); took > 5*time.Second {
		t.Errorf("it took %s", took)
	}
	if got := s.Now(); !got.Equal(epoch.Add(151 * time.Minute)) {
		t.Errorf("the clock stands at %s", got)
	}
}

// TestTheEndOfACallComesFirst ends a call at the instant at which its time is up,
// and a run at the instant at which its schedule fires again.
func TestTheEndOfACallComesFirst(t *testing.T) {
	t.Parallel()
	s := open(t, Config{Script: func(c *run.Call, _ time.Time) ScriptedCall {
		if c.Task == "a" {
			return lasts(time.Hour)
		}
		return lasts(0)
	}}, strings.Replace(pair, `flow "f" {`, `flow "f" {
  trigger "schedule" "hourly" {
    every   = "1h"
    overlap = "skip"
  }`, 1))
	s.play(3)
	var at []string
	for _, r := range s.ended {
		at = append(at, r.Trigger.Time.Sub(epoch).String())
	}
	if want := []string{"1h0m0s", "2h0m0s", "3h0m0s"}; !slices.Equal(at, want) {
		t.Errorf("fires at %v, want %v", at, want)
	}
	for _, r := range s.ended {
		if r.State != run.Succeeded || r.Tasks[0].Attempts != 1 {
			t.Errorf("the run of %s %s: %v", r.Trigger.Time, r.State, r.Error)
		}
	}
}

func TestUntilStandsAtItsEnd(t *testing.T) {
	t.Parallel()
	s := open(t, Config{Script: func(*run.Call, time.Time) ScriptedCall { return lasts(time.Hour) }}, pair)
	s.submit("f")
	for _, hours := range []time.Duration{0, 1, 90} {
		if err := s.Until(t.Context(), epoch.Add(hours*time.Hour), nil); err != nil {
			t.Fatal(err)
		}
		if got := s.Now().Sub(epoch); got != hours*time.Hour {
			t.Errorf("the clock stands at %s, want %s h", got, hours)
		}
	}
	s.want("f failed 1h5m0s", "  a succeeded x1 0s..1h0m0s", "  b failed x1 1h0m0s..1h5m0s timed_out")
}

// A call that waits lets another one compute, and can be canceled.
func TestWaitingCallsLeaveTheirWorkers(t *testing.T) {
	t.Parallel()
	var source strings.Builder
	source.WriteString("flow \"f\" {\n")
	for n := range 6 {
		fmt.Fprintf(&source, "  task \"t%d\" {\n    plugin = \"./p.wasm\"\n  }\n", n)
	}
	source.WriteString("}\n")
	s := open(t, Config{Workers: 2, Script: func(*run.Call, time.Time) ScriptedCall {
		call := lasts(10 * time.Second)
		call.Waits = 9 * time.Second
		return call
	}}, source.String())
	s.submit("f")
	s.play(1)
	s.want("f succeeded 12s",
		"  t0 succeeded x1 0s..10s", "  t1 succeeded x1 0s..10s", "  t2 succeeded x1 1s..11s",
		"  t3 succeeded x1 1s..11s", "  t4 succeeded x1 2s..12s", "  t5 succeeded x1 2s..12s")
	s.ended = nil
	id := s.submit("f")
	if err := s.Until(t.Context(), s.Now().Add(5*time.Second), nil); err != nil {
		t.Fatal(err)
	}
	if err := s.Engine().Cancel(t.Context(), id, "enough"); err != nil {
		t.Fatal(err)
	}
	s.play(1)
	if state := s.ended[0].State; state != run.Canceled {
		t.Error(state)
	}
}

func TestCanceledCallsEndAtOnce(t *testing.T) {
	t.Parallel()
	s := open(t, Config{Script: func(*run.Call, time.Time) ScriptedCall { return ScriptedCall{Hangs: true} }}, pair)
	id := s.submit("f")
	if err := s.Until(t.Context(), epoch.Add(7*time.Minute), nil); err != nil {
		t.Fatal(err)
	}
	if err := s.Engine().Cancel(t.Context(), id, "enough"); err != nil {
		t.Fatal(err)
	}
	s.play(1)
	s.want("f canceled 7m0s", "  a canceled x1 0s..7m0s canceled", "  b canceled x0 canceled")
}

// TestRealCallsTakeNoTime makes real calls, beside each other.
func TestRealCallsTakeNoTime(t *testing.T) {
	t.Parallel()
	lost := 0
	s := open(t, Config{Script: func(c *run.Call, _ time.Time) ScriptedCall {
		return ScriptedCall{Call: func(context.Context, run.Call) (run.Result, error) {
			if c.Task == "b" && c.Attempt == 1 {
				lost++
				return run.Result{}, errors.New("the machine went away")
			}
			return lasts(0).Result, nil
		}}
	}}, pair)
	s.submit("f")
	s.play(1)
	s.want("f succeeded 0s", "  a succeeded x1 0s..0s", "  b succeeded x2 0s..0s")
	if lost != 1 {
		t.Errorf("%d attempts were lost", lost)
	}
}

func TestTheEngineEnds(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	d := New(ctx, Config{Start: epoch, Script: func(*run.Call, time.Time) ScriptedCall { return lasts(0) }})
	cancel()
	if err := d.Until(t.Context(), epoch.Add(time.Hour), nil); !errors.Is(err, context.Canceled) {
		t.Errorf("Until: %v", err)
	}
	d.Close()
	if err := d.Until(t.Context(), epoch.Add(time.Hour), nil); err == nil {
		t.Error("a closed runner continues")
	}
	d = New(t.Context(), Config{Start: epoch, Script: func(*run.Call, time.Time) ScriptedCall { return lasts(0) }})
	defer d.Close()
	gone, leave := context.WithCancel(t.Context())
	leave()
	if err := d.Until(gone, epoch.Add(time.Hour), func() bool { return false }); err != nil && !errors.Is(err, context.Canceled) {
		t.Errorf("Until: %v", err)
	}
}

// TestEachEndIsTold holds what is told of calls: retried, interrupted and lost ones
// too.
func TestEachEndIsTold(t *testing.T) {
	t.Parallel()
	var told []string
	s := open(t, Config{
		Ended: func(c *run.Call, began time.Time, r run.Result) {
			told = append(told, fmt.Sprintf("%s %d %s %s %s", c.Task, c.Attempt, began.Sub(epoch), r.Duration, r.Outcome))
		},
		Script: func(c *run.Call, _ time.Time) ScriptedCall {
			switch {
			case c.Task == "b":
				return ScriptedCall{Call: func(context.Context, run.Call) (run.Result, error) { return run.Result{}, errors.New("gone") }}
			case c.Attempt == 1:
				return ScriptedCall{Hangs: true}
			case c.Attempt == 2:
				return fails(true)
			}
			return lasts(time.Minute)
		},
	}, pair)
	s.submit("f")
	s.play(1)
	want := []string{"a 1 0s 1h0m0s timed_out", "a 2 1h10m0s 0s failed", "a 3 1h30m0s 1m0s succeeded", "b 1 1h31m0s 0s lost"}
	if diff := cmp.Diff(want, told[:min(len(told), len(want))]); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// wide is a flow of many tasks side by side, with retries and jitter.
func wide(width int) string {
	var b strings.Builder
	b.WriteString("flow \"f\" {\n  trigger \"schedule\" \"often\" {\n    every   = \"15m\"\n    overlap = \"allow\"\n  }\n")
	b.WriteString("  defaults {\n    retry {\n      attempts = 5\n      jitter   = 0.5\n    }\n  }\n")
	for i := range width {
		fmt.Fprintf(&b, "  task \"t%d\" {\n    plugin = \"./p.wasm\"\n", i)
		if i >= 8 {
			fmt.Fprintf(&b, "    after = [task.t%d, task.t%d]\n", i-8, (i*7)%(i-7))
		}
		b.WriteString("  }\n")
	}
	b.WriteString("}\n")
	return b.String()
}

// dice is a play whose outcomes and lengths depend on the order in which it is
// asked.
func dice() Script {
	n := uint64(1)
	return func(*run.Call, time.Time) ScriptedCall {
		n = n*6364136223846793005 + 1442695040888963407
		turn := lasts(time.Duration(n>>60) * 10 * time.Second)
		if n>>32&7 == 0 {
			turn.Result = fails(true).Result
		}
		return turn
	}
}

func TestTheSameEachTime(t *testing.T) {
	t.Parallel()
	tell := func() []byte {
		s := open(t, Config{Script: dice(), Workers: 7, Seed: 3}, wide(40))
		s.play(20)
		told, err := json.Marshal(s.ended)
		if err != nil {
			t.Fatal(err)
		}
		return told
	}
	first := tell()
	for range 3 {
		if again := tell(); !slices.Equal(first, again) {
			t.Fatalf("two runs differ:\n%s\n%s", first, again)
		}
	}
}

func BenchmarkTasks(b *testing.B) {
	for _, width := range []int{1, 40} {
		b.Run(fmt.Sprint(width), func(b *testing.B) {
			n := 0
			s := open(b, Config{Script: func(*run.Call, time.Time) ScriptedCall { n++; return lasts(time.Second) }}, wide(width))
			b.ResetTimer()
			if err := s.Until(b.Context(), epoch.AddDate(100, 0, 0), func() bool { return n >= b.N }); err != nil {
				b.Fatal(err)
			}
			b.ReportMetric(float64(n)/b.Elapsed().Seconds(), "tasks/s")
		})
	}
}
