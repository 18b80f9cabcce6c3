package engine

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/flowhost/flowhost/engine/memory"
	"github.com/flowhost/flowhost/run"
)

const pausableHCL = `
flow "f" {
  task "first" { plugin = "./a.wasm" }
  task "second" {
    plugin = "./a.wasm"
    after  = [task.first]
  }
}
flow "parent" {
  task "child" { flow = "f" }
}
`

// While the host is paused, attempts under way end and no other starts, also after a
// restart; what was accepted meanwhile runs once it is resumed.
func TestHostPause(t *testing.T) {
	t.Parallel()
	set := load(t, pausableHCL)
	synctest.Test(t, func(t *testing.T) {
		journal, calls := memory.NewJournal(), make(chan run.Call, 100)
		config := Config{Journal: journal, Invoker: guests{
			"first": func(ctx context.Context, c run.Call) (run.Result, error) {
				calls <- c
				return takes(time.Minute)(ctx, c)
			},
			"second": func(_ context.Context, c run.Call) (run.Result, error) { calls <- c; return gives(c.Input), nil },
		}}
		began := func(want int) {
			t.Helper()
			synctest.Wait()
			if len(calls) != want {
				t.Errorf("%d attempts have begun, want %d", len(calls), want)
			}
		}
		r := boot(t, config, set)
		early := r.submit("f", `null`)
		began(1)
		pause, first, err := r.PauseHost(t.Context(), "a disk is replaced")
		if err != nil || !first || pause.Reason != "a disk is replaced" || pause.At.IsZero() {
			t.Fatalf("pause: %+v, %v, %v", pause, first, err)
		}
		time.Sleep(time.Second)
		if again, first, err := r.PauseHost(t.Context(), "me too"); err != nil || first || again != pause {
			t.Errorf("paused twice: %+v, %v, %v", again, first, err)
		}
		late, nested := r.submit("f", `null`), r.submit("parent", `null`)
		time.Sleep(time.Hour)
		began(1)
		if s := r.Stats(); s.Pause == nil || *s.Pause != pause || s.Running != 0 || s.Ready != 2 {
			t.Errorf("while it is paused: %+v", s)
		}
		r.stop()

		r = boot(t, config, set)
		time.Sleep(time.Hour)
		began(1)
		if ended, err := r.ResumeHost(t.Context()); err != nil || ended == nil || *ended != pause {
			t.Errorf("resume: %v, %v", ended, err)
		}
		if ended, err := r.ResumeHost(t.Context()); err != nil || ended != nil {
			t.Errorf("resumed twice: %v, %v", ended, err)
		}
		for _, id := range []run.ID{early, late, nested} {
			if record := r.wait(id); record.State != run.Succeeded {
				t.Errorf("%s: %v", record.State, record.Error)
			}
		}
		began(6)
		if s := r.Stats(); s.Pause != nil {
			t.Errorf("after it was resumed: %+v", s)
		}
		r.stop()
	})
}

// A run's own time passes while the host is paused, that of attempts does not begin.
func TestTimeoutsWhileTheHostIsPaused(t *testing.T) {
	t.Parallel()
	set := load(t, `
flow "bounded" {
  timeout = "1h"
  task "a" { plugin = "./a.wasm" }
}
flow "f" {
  task "a" {
    plugin  = "./a.wasm"
    timeout = "1h"
  }
}
`)
	synctest.Test(t, func(t *testing.T) {
		r := boot(t, Config{}, set)
		if _, _, err := r.PauseHost(t.Context(), "test"); err != nil {
			t.Fatal(err)
		}
		bounded, free := r.submit("bounded", `null`), r.submit("f", `null`)
		time.Sleep(2 * time.Hour)
		if record := r.wait(bounded); record.Error == nil || record.Error.Outcome != run.OutcomeTimedOut {
			t.Errorf("%s: %v", record.State, record.Error)
		}
		if _, err := r.ResumeHost(t.Context()); err != nil {
			t.Fatal(err)
		}
		if record := r.wait(free); record.State != run.Succeeded {
			t.Errorf("%s: %v", record.State, record.Error)
		}
		r.stop()
	})
}

// The default timeout of attempts changes for those that begin.
func TestTuneTimeout(t *testing.T) {
	t.Parallel()
	set := load(t, `flow "f" {
  task "a" { plugin = "./a.wasm" }
}`)
	synctest.Test(t, func(t *testing.T) {
		r := boot(t, Config{Invoker: guests{"a": takes(time.Hour)}}, set)
		for _, timeout := range []time.Duration{0, time.Second, 2 * time.Hour} {
			r.Tune(Tuning{Timeout: timeout})
			start := time.Now()
			record := r.wait(r.submit("f", `null`))
			want := map[time.Duration]time.Duration{0: 5 * time.Minute, 2 * time.Hour: time.Hour}[timeout]
			if want == 0 {
				want = timeout
			}
			if took := time.Since(start); took != want {
				t.Errorf("with timeout %s, the run %s after %s", timeout, record.State, took)
			}
		}
		r.stop()
	})
}
