package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/flowhost/flowhost/engine/memory"
	"github.com/flowhost/flowhost/run"
)

// span is when the runs of a schedule were going.
type span struct {
	Nominal, From, To time.Duration
	State             run.State
}

// spans gives the runs of schedules in the order of their nominal times.
func spans(t *testing.T, j Journal) []span {
	t.Helper()
	var all []span
	for _, r := range fold(t, j).Runs {
		if r.Trigger.Kind != run.TriggerSchedule {
			continue
		}
		s := span{Nominal: r.Trigger.Time.Sub(epoch), To: r.FinishedAt.Sub(epoch), State: r.State}
		if !r.StartedAt.IsZero() {
			s.From = r.StartedAt.Sub(epoch)
		}
		all = append(all, s)
	}
	slices.SortFunc(all, func(a, b span) int { return int(a.Nominal - b.Nominal) })
	return all
}

func TestOverlap(t *testing.T) {
	t.Parallel()
	const s = time.Second
	for mode, want := range map[string][]span{
		"skip": {
			{10 * s, 10 * s, 35 * s, run.Succeeded}, {40 * s, 40 * s, 65 * s, run.Succeeded},
		},
		"queue_one": {
			{10 * s, 10 * s, 35 * s, run.Succeeded}, {20 * s, 35 * s, 60 * s, run.Succeeded}, {40 * s, 60 * s, 85 * s, run.Succeeded},
		},
		"queue": {
			{10 * s, 10 * s, 35 * s, run.Succeeded}, {20 * s, 35 * s, 60 * s, run.Succeeded}, {30 * s, 60 * s, 85 * s, run.Succeeded},
			{40 * s, 85 * s, 110 * s, run.Succeeded},
		},
		"cancel_running": {
			{10 * s, 10 * s, 20 * s, run.Canceled}, {20 * s, 20 * s, 30 * s, run.Canceled}, {30 * s, 30 * s, 40 * s, run.Canceled},
			{40 * s, 40 * s, 65 * s, run.Succeeded},
		},
		"allow": {
			{10 * s, 10 * s, 35 * s, run.Succeeded}, {20 * s, 20 * s, 45 * s, run.Succeeded}, {30 * s, 30 * s, 55 * s, run.Succeeded},
			{40 * s, 40 * s, 65 * s, run.Succeeded},
		},
	} {
		for _, crash := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, crash %t", mode, crash), func(t *testing.T) {
				t.Parallel()
				set := load(t, scheduled(`
					every   = "10s"
					overlap = "`+mode+`"
					end     = "2000-01-01T00:00:41Z"`))
				synctest.Test(t, func(t *testing.T) {
					journal := memory.NewJournal()
					config := Config{Journal: journal, Invoker: guests{"a": takes(25 * time.Second)}}
					r := boot(t, config, set)
					if crash {
						// Whatever was going is made again and ends later; what follows what does
						// not change, and what waits is decided from the recorded runs alone.
						time.Sleep(24 * s)
						r.crash()
						config.Invoker = guests{"a": takes(11 * time.Second)}
						r = boot(t, config, set)
					}
					time.Sleep(5 * time.Minute)
					r.stop()
					if diff := cmp.Diff(want, spans(t, journal)); diff != "" && !crash {
						t.Errorf("runs (-want +got):\n%s", diff)
					}
					if mode != "allow" {
						apart(t, spans(t, journal))
					}
				})
			})
		}
	}
}

// apart checks that no two runs were going at once.
func apart(t *testing.T, all []span) {
	t.Helper()
	slices.SortFunc(all, func(a, b span) int { return int(a.From - b.From) })
	for i := 1; i < len(all); i++ {
		if all[i].From < all[i-1].To {
			t.Errorf("the run of %s begins at %s, that of %s ends at %s", all[i].Nominal, all[i].From, all[i-1].Nominal, all[i-1].To)
		}
	}
}

// What waits is bounded: more than that is skipped, and the schedule continues.
func TestOverlapQueueIsBounded(t *testing.T) {
	t.Parallel()
	set := load(t, scheduled(`
		every       = "10s"
		overlap     = "queue"
		overlap_max = 2
		count       = 4`))
	synctest.Test(t, func(t *testing.T) {
		journal := memory.NewJournal()
		r := boot(t, Config{Journal: journal, Invoker: guests{"a": takes(95 * time.Second)}}, set)
		time.Sleep(10 * time.Minute)
		r.stop()
		wantFires(t, journal, 10*time.Second, 20*time.Second, 30*time.Second, 110*time.Second)
		if s := r.Stats(); s.Fired != 4 || s.Dropped != 7 {
			t.Errorf("%d fired and %d dropped, want 4 and the 7 from 40 s to 100 s", s.Fired, s.Dropped)
		}
	})
}

// By node, a run may begin while the one before is going, but no task of it
// before the same task of that one has ended.
func TestOverlapByNode(t *testing.T) {
	t.Parallel()
	set := load(t, `
flow "f" {
  trigger "schedule" "s" {
    every   = "10s"
    overlap = "node"
    count   = 4
  }
  task "a" { plugin = "./m.wasm" }
  task "b" {
    plugin = "./m.wasm"
    after  = [task.a]
  }
}`)
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		going, log := map[string]int{}, []string{}
		note := func(d time.Duration) func(context.Context, run.Call) (run.Result, error) {
			return func(ctx context.Context, call run.Call) (run.Result, error) {
				mu.Lock()
				going[call.Task]++
				if going[call.Task] > 1 {
					t.Errorf("task %s is going twice", call.Task)
				}
				log = append(log, fmt.Sprintf("%s of %s at %s", call.Task, call.Scheduled.Sub(epoch), time.Since(epoch)))
				mu.Unlock()
				r, err := takes(d)(ctx, call)
				mu.Lock()
				going[call.Task]--
				mu.Unlock()
				return r, err
			}
		}
		r := boot(t, Config{Invoker: guests{"a": note(4 * time.Second), "b": note(25 * time.Second)}}, set)
		time.Sleep(5 * time.Minute)
		r.stop()
		want := []string{
			"a of 10s at 10s", "b of 10s at 14s", "a of 20s at 20s", "a of 30s at 30s", "b of 20s at 39s", "a of 40s at 40s", "b of 30s at 1m4s", "b of 40s at 1m29s",
		}
		if diff := cmp.Diff(want, log); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	})
}

// A run that is canceled while its tasks wait for an earlier run ends, and those
// behind it do not wait for it any more.
func TestOverlapByNodeLetsCanceledRunsGo(t *testing.T) {
	t.Parallel()
	set := load(t, scheduled(`
		every   = "10s"
		overlap = "node"
		count   = 3`))
	synctest.Test(t, func(t *testing.T) {
		journal := memory.NewJournal()
		r := boot(t, Config{Journal: journal, Invoker: guests{"a": takes(50 * time.Second)}}, set)
		time.Sleep(35 * time.Second)
		status, err := r.Schedules(t.Context())
		if err != nil || len(status) != 1 || len(status[0].Open) != 3 {
			t.Fatalf("schedules %+v, %v", status, err)
		}
		if err := r.Cancel(t.Context(), status[0].Open[1], "not needed"); err != nil {
			t.Fatal(err)
		}
		time.Sleep(5 * time.Minute)
		r.stop()
		const s = time.Second
		want := []span{{10 * s, 10 * s, 60 * s, run.Succeeded}, {20 * s, 20 * s, 35 * s, run.Canceled}, {30 * s, 30 * s, 110 * s, run.Succeeded}}
		if diff := cmp.Diff(want, spans(t, journal)); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	})
}

func TestFireNow(t *testing.T) {
	t.Parallel()
	set := load(t, scheduled(`cron = "0 3 * * *"`))
	synctest.Test(t, func(t *testing.T) {
		r := boot(t, Config{Invoker: guests{"a": takes(10 * time.Second)}}, set)
		night := run.ScheduleRef{Flow: "f", Trigger: "s"}
		first, err := r.Fire(t.Context(), night, run.Request{Key: "k"})
		if err != nil || !first.Accepted {
			t.Fatalf("fire: %+v, %v", first, err)
		}
		if again, err := r.Fire(t.Context(), night, run.Request{Key: "k"}); err != nil || again.Run != first.Run || !again.Repeated {
			t.Errorf("the same key again: %+v, %v", again, err)
		}
		var overlap *OverlapError
		if _, err := r.Fire(t.Context(), night, run.Request{}); !errors.As(err, &overlap) || overlap.Run != first.Run {
			t.Errorf("while it is going: %v", err)
		}
		if _, err := r.Fire(t.Context(), run.ScheduleRef{Flow: "f", Trigger: "x"}, run.Request{}); !errors.As(err, new(*UnknownScheduleError)) {
			t.Errorf("unknown: %v", err)
		}
		r.wait(first.Run)
		status, err := r.Schedules(t.Context())
		if err != nil || !status[0].Next.Equal(epoch.Add(3*time.Hour)) || status[0].Fired != 0 {
			t.Errorf("the schedule has not gone on as if nothing had happened: %+v, %v", status, err)
		}
		r.stop()
	})
}
