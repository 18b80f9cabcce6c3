package engine

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/flowhost/flowhost/run"
)

const followersHCL = `
flow "import" {
  param "n" { default = 1 }
  task "read" {
    plugin = "./m.wasm"
    input  = param.n
  }
  output "rows" { value = task.read.output }
  output "name" { value = ["a"][task.read.output == 7 ? 1 : 0] } # there is none for 7
}
flow "report" {
  param "rows" {}
  trigger "flow" "imported" {
    after  = flow.import
    filter = trigger.payload.output.rows > 0
    params = { rows = trigger.payload.output.rows }
  }
  task "print" {
    plugin = "./m.wasm"
    input  = [param.rows, trigger.payload.run, trigger.kind, trigger.name, trigger.time]
  }
}
flow "alert" {
  trigger "flow" "failed" {
    after = flow.import
    on    = ["failed", "canceled"]
  }
  task "tell" {
    plugin = "./m.wasm"
    input  = [trigger.payload.state, "${trigger.payload.error.task} ${trigger.payload.error.outcome}", trigger.payload.output]
  }
}
flow "around" {
  task "call" { flow = flow.import }
}
flow "off" {
  trigger "flow" "never" {
    after   = flow.import
    enabled = false
  }
  task "t" { plugin = "./m.wasm" }
}`

// of are the records of all runs of a flow, the oldest first.
func (r *rig) of(flow string) (all []*run.Record) {
	r.t.Helper()
	for id, s := range fold(r.t, r.journal).Runs {
		if s.Flow == flow {
			all = append(all, r.wait(id))
		}
	}
	return all
}

func TestRunsStartWhenOthersEnd(t *testing.T) {
	t.Parallel()
	set := load(t, followersHCL)
	for name, c := range map[string]struct {
		flow string
		n    string
		want map[string]string // the inputs of those that follow
	}{
		"a success":            {"import", "3", map[string]string{"report": `[3,"%s","flow","imported","2026-01-02T03:04:05Z"]`}},
		"one that is left out": {"import", "0", map[string]string{}},
		"a failure":            {"import", "-1", map[string]string{"alert": `["failed","read failed",null]`}},
		"an output":            {"import", "7", map[string]string{"alert": `["failed","run rejected",null]`}},
		"a sub-flow":           {"around", "", map[string]string{}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				r := boot(t, Config{Workers: 1, OpenRuns: 1, Invoker: guests{"read": func(_ context.Context, call run.Call) (run.Result, error) {
					if string(call.Input) == "-1" {
						return run.Result{Outcome: run.OutcomeFailed, Failure: &run.Failure{Outcome: run.OutcomeFailed, Message: "test"}}, nil
					}
					return gives(call.Input), nil
				}}}, set)
				request := run.Request{Flow: c.flow, Trigger: run.Trigger{Kind: run.TriggerManual, Time: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)}}
				if c.n != "" {
					request.Params = map[string]json.RawMessage{"n": json.RawMessage(c.n)}
				}
				receipt, err := r.Submit(t.Context(), request)
				if err != nil {
					t.Fatal(err)
				}
				r.wait(receipt.Run)
				synctest.Wait()
				got := map[string]string{}
				for _, flow := range []string{"report", "alert", "off"} {
					for _, record := range r.of(flow) {
						got[flow] += string(record.Tasks[0].Input)
					}
				}
				if text, ok := c.want["report"]; ok {
					c.want["report"] = fmt.Sprintf(text, receipt.Run)
				}
				if diff := cmp.Diff(c.want, got); diff != "" {
					t.Errorf("what follows differs (-want +got):\n%s", diff)
				}
				r.stop()
			})
		})
	}
}

// Wherever the process ends, what follows is made once: the journal is cut after each
// of its commits, and the rest happens again.
func TestWhatFollowsIsMadeOnce(t *testing.T) {
	t.Parallel()
	set := load(t, followersHCL)
	synctest.Test(t, func(t *testing.T) {
		r := boot(t, Config{}, set)
		r.run("import", `null`)
		synctest.Wait()
		r.stop()
		whole := r.journal
		for n := uint64(1); n <= r.exec.commits.revision; n++ {
			r := boot(t, Config{Journal: prefix(t, whole, n)})
			synctest.Wait() // all that can be done is done before flows are deployed
			if err := r.Deploy(t.Context(), set); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
			made := map[string][]run.State{}
			for _, one := range fold(t, r.journal).Runs {
				made[one.Flow] = append(made[one.Flow], one.State)
			}
			want := map[string][]run.State{"import": {run.Succeeded}, "report": {run.Succeeded}}
			if diff := cmp.Diff(want, made); len(made) > 0 && diff != "" {
				t.Errorf("after revision %d (-want +got):\n%s", n, diff)
			}
			r.stop()
		}
	})
}

// Flows that start each other in no time leave room for everything else, and end with
// the engine.
func TestAChainWithoutEnd(t *testing.T) {
	t.Parallel()
	set := load(t, `
flow "f" {
  trigger "flow" "again" {
    after  = flow.f
    filter = trigger.payload.state != ""
  }
  task "t" {
    plugin = "./m.wasm"
    when   = false
  }
}
flow "other" {
  task "t" { plugin = "./m.wasm" }
}`)
	r := boot(t, Config{}, set)
	r.run("f", `null`)
	if other := r.run("other", `null`); other.State != run.Succeeded {
		t.Errorf("the other run is %s", other.State)
	}
	r.Drain()
	if err := <-r.ended; err != nil {
		t.Error(err)
	}
	r.kill()
}

// A flow's limit holds for what follows; the slot of the run that ends is free.
func TestWhatFollowsObeysLimits(t *testing.T) {
	t.Parallel()
	for onLimit, want := range map[string]map[run.State]int{
		"queue":          {run.Succeeded: 2},
		"skip":           {run.Succeeded: 1},
		"cancel_running": {run.Succeeded: 1, run.Canceled: 1},
	} {
		t.Run(onLimit, func(t *testing.T) {
			t.Parallel()
			set := load(t, `
flow "first" {
  task "t" { plugin = "./m.wasm" }
}
flow "next" {
  concurrency {
    limit    = 1
    on_limit = "`+onLimit+`"
  }
  trigger "flow" "after" { after = flow.first }
  trigger "flow" "again" {
    after  = flow.next
    filter = trigger.payload.output.slow < 0
  }
  task "slow" { plugin = "./m.wasm" }
}`)
			synctest.Test(t, func(t *testing.T) {
				r := boot(t, Config{Invoker: guests{"slow": takes(time.Minute)}}, set)
				r.run("first", `null`)
				r.run("first", `null`)
				time.Sleep(time.Hour)
				got := map[run.State]int{}
				for _, record := range r.of("next") {
					got[record.State]++
				}
				if diff := cmp.Diff(want, got); diff != "" {
					t.Errorf("runs that follow differ (-want +got):\n%s", diff)
				}
				r.stop()
			})
		})
	}
}

// Flows that start several runs after each end multiply until there is no room, and
// the host takes other runs then.
func TestFollowersThatMultiply(t *testing.T) {
	t.Parallel()
	set := load(t, `
flow "a" {
  trigger "flow" "x" {
    after  = flow.a
    filter = trigger.payload.state == "succeeded"
  }
  trigger "flow" "y" {
    after  = flow.a
    filter = trigger.payload.state == "succeeded"
  }
  wait "w" { duration = "1s" }
}`)
	synctest.Test(t, func(t *testing.T) {
		r := boot(t, Config{OpenRuns: 20}, set)
		if _, err := r.Submit(t.Context(), run.Request{Flow: "a"}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(12500 * time.Millisecond)
		page, err := r.List(t.Context(), run.Query{Limit: 10_000, States: []run.State{run.Pending, run.Running}})
		if err != nil || len(page.Runs) < 20 || len(page.Runs) > 41 {
			t.Errorf("%d runs are open, %v, want at most twice the limit of 20", len(page.Runs), err)
		}
		r.kill()
		<-r.ended
	})
}

// The hops of a run are those of whatever it starts.
func TestFollowersAndSubflowsInheritHops(t *testing.T) {
	t.Parallel()
	set := load(t, `
flow "a" {
  task "sub" { flow = flow.b }
}
flow "b" {
  wait "w" { duration = "1s" }
}
flow "c" {
  trigger "flow" "x" { after = flow.a }
  wait "w" { duration = "1s" }
}`)
	synctest.Test(t, func(t *testing.T) {
		told := finished{}
		r := boot(t, Config{Observers: []Observation{{Observer: told}}}, set)
		headers := map[string][]string{run.HeaderHops: {"5"}, "Other": {"x"}}
		if _, err := r.Submit(t.Context(), run.Request{Flow: "a", Trigger: run.Trigger{Headers: headers}}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		r.kill()
		<-r.ended
		if len(told) != 3 {
			t.Errorf("%d runs have ended, want 3", len(told))
		}
		for _, record := range told {
			if hops, err := record.Trigger.Hops(); hops != 5 || err != nil {
				t.Errorf("flow %s: %d hops, %v", record.Flow, hops, err)
			}
		}
	})
}
