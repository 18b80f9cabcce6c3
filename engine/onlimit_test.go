package engine

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/flowhost/flowhost/engine/memory"
	"github.com/flowhost/flowhost/flows"
	"github.com/flowhost/flowhost/run"
)

func limitHCL(on string) string {
	return `
flow "f" {
  concurrency {
    limit    = 2
    key      = trigger.payload
    on_limit = "` + on + `"
  }
  task "a" { plugin = "./m.wasm" }
}`
}

// What comes while all slots of a key are taken, with each on_limit: over a restart
// the slots are those of the runs that are recorded.
func TestOnLimit(t *testing.T) {
	t.Parallel()
	for on, want := range map[string][]run.State{
		"queue":          {run.Succeeded, run.Succeeded, run.Succeeded},
		"skip":           {run.Succeeded, run.Succeeded, ""},
		"cancel_running": {run.Canceled, run.Canceled, run.Succeeded},
	} {
		for _, crash := range []bool{false, true} {
			t.Run(on, func(t *testing.T) {
				t.Parallel()
				set := load(t, limitHCL(on))
				synctest.Test(t, func(t *testing.T) {
					config := Config{Journal: memory.NewJournal(), Invoker: guests{"a": takes(time.Minute)}}
					r := boot(t, config, set)
					var ids []run.ID
					ask := func(key string) {
						receipt, err := r.Submit(t.Context(), run.Request{Flow: "f", Trigger: run.Trigger{Kind: run.TriggerManual, Payload: []byte(key)}})
						if err != nil || receipt.Accepted == receipt.Limited {
							t.Errorf("%+v, %v", receipt, err)
						}
						ids = append(ids, receipt.Run)
						time.Sleep(time.Second)
					}
					ask(`"x"`)
					ask(`"x"`)
					if crash {
						r.crash()
						r = boot(t, config, set)
						time.Sleep(time.Second)
					}
					ask(`"x"`)
					ask(`"y"`) // another key has slots of its own
					time.Sleep(5 * time.Minute)
					r.stop()
					runs := fold(t, config.Journal).Runs
					var got []run.State
					for _, id := range ids {
						state := run.State("")
						if id != "" {
							state = runs[id].State
						}
						got = append(got, state)
					}
					if diff := cmp.Diff(append(want[:3:3], run.Succeeded), got); diff != "" {
						t.Errorf("(-want +got):\n%s", diff)
					}
				})
			})
		}
	}
}

// A position is decided by a run that is left out, and a schedule continues.
func TestOnLimitSkipDecides(t *testing.T) {
	t.Parallel()
	set := load(t, `
flow "f" {
  concurrency { on_limit = "skip" }
  trigger "schedule" "s" {
    every   = "10s"
    overlap = "allow"
  }
  task "a" { plugin = "./m.wasm" }
}`)
	synctest.Test(t, func(t *testing.T) {
		journal := memory.NewJournal()
		r := boot(t, Config{Journal: journal, Invoker: guests{"a": takes(25 * time.Second)}}, set)
		time.Sleep(15 * time.Second)
		receipt, err := r.Submit(t.Context(), run.Request{Flow: "f", Position: run.Position{Source: "stream", Seq: 3}})
		if err != nil || !receipt.Limited {
			t.Errorf("%+v, %v", receipt, err)
		}
		if mark, err := r.Watermark(t.Context(), "stream"); err != nil || mark.Seq != 3 {
			t.Errorf("watermark %+v, %v", mark, err)
		}
		time.Sleep(60 * time.Second)
		if s := r.Stats(); s.Dropped != 4 {
			t.Errorf("%d times were dropped, want those at 20, 30, 50 and 60 s", s.Dropped)
		}
		r.stop()
		wantFires(t, journal, 10*time.Second, 40*time.Second, 70*time.Second)
	})
}

// A run that waits is not overtaken while one before it waits for more slots than
// it does itself.
func TestRunsOfVersionsWithOtherLimitsKeepTheirOrder(t *testing.T) {
	t.Parallel()
	versions := map[int]*flows.Set{}
	for _, limit := range []int{1, 2} {
		versions[limit] = load(t, fmt.Sprintf("flow \"f\" {\n concurrency {\n limit = %d\n }\n%s}\n", limit, plain("t")))
	}
	synctest.Test(t, func(t *testing.T) {
		r := boot(t, Config{Workers: 8, Invoker: guests{"t": takes(10 * time.Second)}})
		var ids []run.ID
		for _, c := range []struct {
			limit int
			then  time.Duration
		}{{2, 5 * time.Second}, {2, time.Second}, {1, 0}, {2, 5 * time.Second}, {2, 0}} {
			if err := r.Deploy(t.Context(), versions[c.limit]); err != nil {
				t.Fatal(err)
			}
			ids = append(ids, r.submit("f", `null`))
			time.Sleep(c.then)
		}
		if before, after := r.wait(ids[3]), r.wait(ids[4]); after.StartedAt.Before(*before.StartedAt) {
			t.Errorf("a run that came later starts at %v, the one before it at %v", after.StartedAt, before.StartedAt)
		}
		r.stop()
	})
}
