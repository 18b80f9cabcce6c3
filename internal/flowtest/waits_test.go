package flowtest

import (
	"encoding/json"
	"testing"
	"time"
)

const release = `
plugin "shop" {
  source = "./shop.wasm"
}
flow "release" {
  trigger "schedule" "daily" {
    every   = "24h"
    overlap = "allow"
  }
  task "build" {
    plugin  = plugin.shop
    timeout = "2h"
  }
  wait "cool" {
    duration = "36h"
    after    = [task.build]
  }
  wait "window" {
    until = "2026-01-05T08:00:00Z"
    after = [wait.cool]
  }
  wait "approval" {
    approval = "release it?"
    timeout  = "72h"
    after    = [wait.window]
  }
  task "ship" {
    plugin  = plugin.shop
    timeout = "2h"
    input   = wait.approval.payload
  }
  wait "arrival" {
    subject = "shipped"
    after   = [task.ship]
  }
  wait "signed" {
    signal = true
    after  = [task.ship]
  }
  output "arrived" {
    value = { at = wait.arrival.payload, by = wait.signed.payload }
  }
  finally {
    timeout = "2h"
    wait "settle" {
      duration = "1h"
    }
  }
}
`

const mockRelease = `
mock_plugin "shop" {
  output = input
  takes  = "1h"
}
`

// TestWaits takes 4 days and 8 hours up to the approval.
func TestWaits(t *testing.T) {
	t.Parallel()
	passing(t, release+mockRelease, map[string]string{
		"as soon as they wait": `
  approve "approval" {
    by      = "ada"
    payload = { ticket = 7 }
  }
  signal "arrival" {
    payload = "dock 5"
  }
  signal "signed" {
    after   = "110h"
    payload = { name = "Ada" }
  }
  assert {
    condition = wait.cool.state == "succeeded" && wait.cool.duration == 36 * 3600 && wait.cool.payload == null
  }
  assert {
    condition = wait.window.finished_at == "2026-01-05T08:00:00Z"
  }
  assert {
    condition = wait.approval.payload == { approved = true, by = "ada", payload = { ticket = 7 }, reason = null } && wait.approval.duration == 0
  }
  assert {
    condition = run.output.arrived == { at = "dock 5", by = { name = "Ada" } } && wait.signed.duration == 5 * 3600
  }
  assert {
    condition = run.duration == 111 * 3600 && wait.settle.started_at == wait.signed.finished_at
  }`,
		"refused": `
  approve "approval" {
    after    = "108h"
    approved = false
    by       = "bob"
    reason   = "not on a Monday"
  }
  assert {
    condition = run.state == "failed" && run.error.code == "refused" && strcontains(wait.approval.error.message, "by bob: not on a Monday")
  }
  assert {
    condition = wait.approval.duration == 4 * 3600 && task.ship.state == "skipped" && wait.arrival.state == "skipped"
  }`,
		"not answered": `
  assert {
    condition = run.error.outcome == "timed_out" && run.error.task == "wait.approval" && wait.approval.duration == 72 * 3600
  }`,
		"so far": `
  until = "40h"
  assert {
    condition = run.state == "running" && wait.window.state == "running" && wait.approval.state == "waiting" && wait.window.duration == null
  }`,
		"each run": `
  trigger = "daily"
  until   = "96h"
  at      = "2026-01-05T00:00:00Z"
  approve "approval" {}
  signal "arrival" {
    after = "50h"
  }
  signal "signed" {}
  assert {
    condition = runs[*].state == ["succeeded", "succeeded", "running", "running"]
  }
  assert {
    condition = [for r in runs : r.wait.arrival.state] == ["succeeded", "succeeded", "running", "waiting"]
  }
  assert {
    condition = [for r in slice(runs, 0, 2) : r.wait.arrival.duration] == [12 * 3600, 12 * 3600]
  }`,
	})
}

func TestAnswersThatNobodyWaitsFor(t *testing.T) {
	t.Parallel()
	failing(t, release+mockRelease, map[string]wrong{
		"too early": {`
  approve "approval" {
    after = "1h"
  }`, `^Nothing waits for this: 1h0m0s after the start of the run, the wait "approval" is not open. Leave out "after" .*$`},
		"at the same instant as the timeout": {`
  approve "approval" {
    after = "176h"
  }`, `^Nothing waits for this: 176h0m0s after the start of the run, the wait "approval" has ended already: it is failed.$`},
		"after the run": {`
  approve "approval" {
    approved = false
  }
  signal "signed" {
    after = "400h"
  }`, `^Nothing waits for this: 400h0m0s after the start of the run, it has ended: it took 10[0-9]h0m0s.$`},
		"none": {`
  approve "approval" {}
  signal "arrival" {}`, `^The run is stuck: .* It waits for an answer. Write signal "signed" \{\} in the test.$`},
	})
}

// TestLimits holds what waits for slots in virtual time.
func TestLimits(t *testing.T) {
	t.Parallel()
	passing(t, `
limit "calls" {
  concurrency = 2
}
limit "slow" {
  rate = "6/h"
}
flow "limited" {
  trigger "schedule" "hourly" {
    every   = "1h"
    overlap = "allow"
  }
  concurrency {
    limit    = 1
    on_limit = "queue"
  }
  task "copy" {
    for_each = range(6)
    timeout  = "3h"
    plugin   = "./shop.wasm"
    limit    = limit.calls
  }
  task "tell" {
    for_each = task.copy.output
    timeout  = "3h"
    plugin   = "./shop.wasm"
    limit    = limit.slow
  }
}
`, map[string]string{
		"one run": `
  mock "copy" {
    takes = "30m"
  }
  mock "tell" {}
  assert {
    condition = task.copy.duration == 90 * 60 && task.tell.items[*].state == [for i in range(6) : "succeeded"]
  }`,
		"one after the other": `
  trigger = "hourly"
  until   = "3h"
  mock "copy" {
    takes = each.index < 2 ? "2h" : "1s"
  }
  mock "tell" {
    takes = "1h"
  }
  assert {
    condition = runs[*].state == ["running", "pending", "pending"]
  }`,
	})
}

func TestItIsQuick(t *testing.T) {
	t.Parallel()
	r := performIn(t, release+mockRelease, `
  approve "approval" {}
  signal "arrival" {}
  signal "signed" {}`)
	if !r.Passed() || r.Virtual < 100*time.Hour || r.Real > 5*time.Second {
		t.Errorf("%v: %s in %s", r.Problems, r.Virtual, r.Real)
	}
}

// TestTheSameEachTime holds that answers do not bring chance into a test.
func TestTheSameEachTime(t *testing.T) {
	t.Parallel()
	first := ""
	for range 5 {
		r := performIn(t, nested, `
  mock "release/build" {
    output = input
    takes  = "${attempt}m"
  }
  approve "release/ship/approval" {
    after = "3h"
  }`)
		told, err := json.Marshal(r.Runs)
		if err != nil || !r.Passed() {
			t.Fatal(err, r.Problems)
		}
		if first == "" {
			first = string(told)
		}
		if first != string(told) {
			t.Fatalf("two runs of a test differ:\n%s\n%s", first, told)
		}
	}
}
