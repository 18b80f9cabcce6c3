package engine

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/flowhost/flowhost/engine/memory"
	"github.com/flowhost/flowhost/run"
)

// A task that the flow's wiring skips has a reason in its record and no error; one that
// cannot run because of a failure has the error.
func TestReasonsOfSkippedTasks(t *testing.T) {
	t.Parallel()
	set := load(t, `
flow "f" {
  task "off" {
    plugin = "./m.wasm"
    when   = false
  }
  task "after_off" {
    plugin = "./m.wasm"
    after  = [task.off]
  }
  task "after_both" {
    plugin = "./m.wasm"
    after  = [task.off, task.after_off]
  }
  task "rescue" {
    plugin = "./m.wasm"
    after  = [task.off]
    run_on = "failure"
  }
  group "closed" {
    when = false
    group "inner" {
      task "member" { plugin = "./m.wasm" }
    }
  }
  task "after_group" {
    plugin = "./m.wasm"
    after  = [group.closed]
  }
  group "one" {
    mode = "first_success"
    task "first" { plugin = "./m.wasm" }
    task "second" { plugin = "./m.wasm" }
  }
  task "slow" { plugin = "./m.wasm" }
  task "after_slow" {
    plugin = "./m.wasm"
    after  = [task.slow]
  }
}`)
	for name, crashes := range map[string]bool{"without a crash": false, "over a crash": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				config := Config{Journal: memory.NewJournal(), Workers: 8, Invoker: guests{"slow": endsAs(run.Failed, 10*time.Second)}}
				r := boot(t, config, set)
				id := r.submit("f", `null`)
				time.Sleep(5 * time.Second)
				if crashes {
					r.crash()
					r = boot(t, config, set)
				}
				got := map[string]string{}
				record := r.wait(id)
				for _, task := range record.Tasks {
					if task.State == run.Skipped && (task.Error == nil) == (task.Reason == "") {
						t.Errorf("task %s: error %v, reason %q", task.Task, task.Error, task.Reason)
					}
					if task.Reason != "" {
						got[task.Task] = task.Reason
					}
				}
				if diff := cmp.Diff(map[string]string{
					"off": "when is false", "after_off": "task off was skipped", "after_both": "everything before it was skipped",
					"rescue": "nothing before it failed", "member": "group inner was skipped: group closed was skipped: when is false",
					"after_group": "group closed was skipped", "second": "first succeeded first in group one",
				}, got); diff != "" {
					t.Errorf("reasons (-want +got):\n%s", diff)
				}
				if failure := taskOf(t, record, "after_slow").Error; failure == nil || failure.Code != run.CodeUpstream {
					t.Errorf("after_slow: %v", failure)
				}
				r.stop()
			})
		})
	}
}
