package engine

import (
	"context"
	"encoding/json"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/flowhost/flowhost/run"
)

// deaf is an invoker whose tasks named "hangs" end when it lets them, whatever
// their contexts say.
type deaf struct {
	gauge
	letGo chan struct{}
	mu    sync.Mutex
	made  []run.Call
}

func newDeaf() *deaf { return &deaf{letGo: make(chan struct{})} }

func (d *deaf) Invoke(_ context.Context, c run.Call) (run.Result, error) {
	d.mu.Lock()
	d.made = append(d.made, c)
	d.mu.Unlock()
	if c.Task != "hangs" {
		return gives(c.Input), nil
	}
	d.add(1)
	defer d.add(-1)
	<-d.letGo
	return gives(json.RawMessage(`"late"`)), nil
}

func (d *deaf) hanging() int {
	d.gauge.mu.Lock()
	defer d.gauge.mu.Unlock()
	return d.now
}

const hangsHCL = `
flow "f" {
  task "hangs" {
    plugin  = "./m.wasm"
    timeout = "5s"
  }
  task "next" {
    plugin = "./m.wasm"
    after  = [task.hangs]
    run_on = "always"
  }
}
flow "again" {
  task "hangs" {
    plugin  = "./m.wasm"
    timeout = "5s"
    retry {
      attempts = 2
      delay    = "1s"
      jitter   = 0
    }
  }
}
flow "good" {
  task "a" {
    plugin = "./m.wasm"
    input  = trigger.payload
  }
}`

func TestAttemptThatDoesNotEndIsGivenUp(t *testing.T) {
	t.Parallel()
	set := load(t, hangsHCL)
	for name, c := range map[string]struct {
		cancel  func(*rig, run.ID) error
		want    map[string]run.State
		outcome run.Outcome
		after   time.Duration
	}{
		"when its time is up": {
			nil, map[string]run.State{"": run.Failed, "hangs": run.Failed, "next": run.Succeeded},
			run.OutcomeTimedOut, 5*time.Second + giveUpAfter,
		},
		"when its run is canceled": {
			func(r *rig, id run.ID) error { return r.Cancel(context.Background(), id, "") },
			map[string]run.State{"": run.Canceled, "hangs": run.Canceled, "next": run.Canceled},
			run.OutcomeCanceled, 2*time.Second + giveUpAfter,
		},
		"when it is canceled": {
			func(r *rig, id run.ID) error {
				return r.CancelTask(context.Background(), id, run.TaskRef{Task: "hangs"}, "")
			},
			map[string]run.State{"": run.Canceled, "hangs": run.Canceled, "next": run.Succeeded},
			run.OutcomeCanceled, 2*time.Second + giveUpAfter,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				host := newDeaf()
				r := boot(t, Config{Workers: 1, Invoker: host}, set)
				id := r.submit("f", `1`)
				time.Sleep(2 * time.Second)
				if c.cancel != nil {
					if err := c.cancel(r, id); err != nil {
						t.Error(err)
					}
				}
				record := r.wait(id)
				wantStates(t, record, c.want)
				task := taskOf(t, record, "hangs")
				if *task.Outcome != c.outcome || task.Error.Code != run.CodeStuck || task.Error.At == "" {
					t.Errorf("the attempt ends as %s with %+v", *task.Outcome, task.Error)
				}
				if took := task.FinishedAt.Sub(*task.StartedAt); took != c.after {
					t.Errorf("it was given up after %s, want %s", took, c.after)
				}
				if host.hanging() != 1 {
					t.Error("the call has ended after all")
				}
				if good := r.run("good", `7`); good.State != run.Succeeded { // the only worker was replaced
					t.Errorf("another run is %s", good.State)
				}
				before := len(eventsIn(t, r.journal))
				close(host.letGo)
				synctest.Wait()
				time.Sleep(time.Minute)
				if after := len(eventsIn(t, r.journal)); after != before {
					t.Errorf("%d events were recorded of a late return", after-before)
				}
				if good := r.run("good", `8`); good.State != run.Succeeded {
					t.Errorf("after the late return another run is %s", good.State)
				}
				r.stop()
			})
		})
	}
}

// A time-out is a reason for another attempt, also when it had to be enforced.
func TestAttemptIsMadeAgainAfterOneWasGivenUp(t *testing.T) {
	t.Parallel()
	set := load(t, hangsHCL)
	synctest.Test(t, func(t *testing.T) {
		host := newDeaf()
		r := boot(t, Config{Workers: 2, Invoker: host}, set)
		id := r.submit("again", `1`)
		time.Sleep(5*time.Second + giveUpAfter + 2*time.Second)
		close(host.letGo) // both return; the first one is too late
		record := r.wait(id)
		task := taskOf(t, record, "hangs")
		if record.State != run.Succeeded || task.Attempts != 2 || string(task.Output) != `"late"` {
			t.Errorf("the run is %s after %d attempts and gives %s", record.State, task.Attempts, task.Output)
		}
		r.stop()
	})
}

// Each attempt that was given up keeps its memory. So no more of them are
// replaced than there are workers, and the rest of the work waits. When some end
// after all, it continues.
func TestHangingAttemptsAreBounded(t *testing.T) {
	t.Parallel()
	const workers = 4
	set := load(t, hangsHCL)
	synctest.Test(t, func(t *testing.T) {
		host := newDeaf()
		r := boot(t, Config{Workers: workers, Invoker: host}, set)
		var ids []run.ID
		for range 10 * workers {
			ids = append(ids, r.submit("f", `1`))
		}
		time.Sleep(time.Hour)
		if n := host.hanging(); n < workers || n > 2*workers {
			t.Errorf("%d calls hang, want %d that were given up and %d at most that may not be", n, workers, workers)
		}
		given := 0
		for _, e := range eventsIn(t, r.journal) {
			if end, ok := e.Data.(*run.AttemptFinished); ok && end.Failure != nil && end.Failure.Code == run.CodeStuck {
				given++
			}
		}
		if given != workers {
			t.Errorf("%d attempts were given up, want %d", given, workers)
		}
		close(host.letGo)
		for _, id := range ids {
			r.wait(id)
		}
		r.stop()
	})
}

func TestSoftStopWaitsForAttemptsUntilTheyAreGivenUp(t *testing.T) {
	t.Parallel()
	set := load(t, hangsHCL)
	synctest.Test(t, func(t *testing.T) {
		host, told := newDeaf(), &notices{}
		r := boot(t, Config{Invoker: host, Observers: []Observation{{Observer: told}}}, set)
		id := r.submit("f", `1`)
		time.Sleep(time.Second)
		r.Drain()
		time.Sleep(4*time.Second + giveUpAfter + time.Second)
		close(host.letGo)
		r.stop()
		last := told.all()[len(told.all())-1]
		end, ok := last.Event.Data.(*run.AttemptFinished)
		if !ok || last.Event.Run != id || end.Outcome != run.OutcomeTimedOut || end.Failure.Code != run.CodeStuck {
			t.Errorf("the last thing observers were told is %+v", last.Event.Data)
		}
		if at := last.Event.At; time.Since(at) != time.Second {
			t.Errorf("the attempt was given up %s before the stop", time.Since(at))
		}
	})
}

// What has ended after all does not count any more: a host that meets a hanging
// call now and then runs forever.
func TestLateReturnMakesRoomForTheNext(t *testing.T) {
	t.Parallel()
	set := load(t, hangsHCL)
	synctest.Test(t, func(t *testing.T) {
		host := newDeaf()
		r := boot(t, Config{Workers: 1, Invoker: host}, set)
		for i := range 5 {
			id := r.submit("f", `1`)
			ctx, stop := context.WithTimeout(t.Context(), time.Minute)
			if _, err := r.Wait(ctx, id); err != nil {
				t.Errorf("attempt %d is not given up: %v", i+1, err)
			}
			stop()
			host.letGo <- struct{}{}
		}
		r.stop()
	})
}

// A call that never ends must not keep the process from stopping.
func TestSoftStopLeavesBehindWhatWasGivenUp(t *testing.T) {
	t.Parallel()
	set := load(t, hangsHCL)
	synctest.Test(t, func(t *testing.T) {
		host := newDeaf()
		defer close(host.letGo)
		r := boot(t, Config{Workers: 2, Invoker: host}, set)
		r.wait(r.submit("f", `1`))
		r.Drain()
		select {
		case err := <-r.ended:
			if err != nil {
				t.Errorf("Run gives %v", err)
			}
		case <-time.After(time.Hour):
			t.Error("Run waits for a call that was given up")
		}
		r.kill()
	})
}
