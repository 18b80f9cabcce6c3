package flows

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/hashicorp/hcl/v2"

	"github.com/flowhost/flowhost/run"
	"github.com/flowhost/flowhost/scheduler"
)

func TestTaskSettings(t *testing.T) {
	t.Parallel()
	f := oneFlow(t, `
		variable "patience" {
		  default = "7s"
		}
		defaults {
		  timeout = "1m"
		  retry {
		    attempts = 3
		    delay    = "2s"
		  }
		}
		plugin "p" {
		  source = "./pricing.wasm"
		  limits {
		    memory = "64MiB"
		    output = 1024
		    fuel   = 5000000000
		  }
		}
		plugin "q" {
		  source = "./run.wasm"
		  digest = "`+digestOf("run.wasm")+`"
		}
		flow "f" {
		  description = "for ${flow.name}"
		  timeout     = "1h30m"
		  defaults {
		    timeout = var.patience
		  }
		  task "plain" {
		    plugin = plugin.p
		  }
		  task "own" {
		    description = "d"
		    plugin      = true ? plugin.q : plugin.p
		    timeout     = "250ms"
		    retries     = 0
		    run_on      = "failure"
		    limits {
		      memory = "1.5KB"
		      log    = "2 KiB"
		      fuel   = 7
		    }
		    after = [task.plain, task.plain]
		  }
		  task "full" {
		    plugin = plugin.p
		    function = "refund"
		    limits {
		      memory = "1GiB"
		    }
		    retry {
		      attempts = 9
		      backoff  = "constant"
		      max      = "1m"
		      jitter   = 0.5
		    }
		    input = task.own.output
		    when  = task.plain.state == "failed"
		    after = [task.own]
		  }
		}`)
	want := []*Task{
		{
			Name: "plain", Plugin: Plugin{"p", "./pricing.wasm", digestOf("pricing.wasm")}, Function: "main", RunOn: RunOnSuccess,
			Timeout: 7 * time.Second, Retry: run.RetryPolicy{Attempts: 3, Delay: 2 * time.Second}, Limits: run.Limits{Memory: 64 << 20, Output: 1024, Fuel: 5_000_000_000},
		},
		{
			Name: "own", Node: 1, Description: "d", Plugin: Plugin{"q", "./run.wasm", digestOf("run.wasm")}, Function: "run", RunOn: RunOnFailure,
			Timeout: 250 * time.Millisecond, Retry: run.RetryPolicy{Attempts: 1, Delay: 2 * time.Second}, Limits: run.Limits{Memory: 1500, Log: 2048, Fuel: 7},
		},
		{
			Name: "full", Node: 2, Plugin: Plugin{"p", "./pricing.wasm", digestOf("pricing.wasm")}, Function: "refund", RunOn: RunOnSuccess,
			Timeout: 7 * time.Second,
			Retry:   run.RetryPolicy{Attempts: 9, Backoff: run.Constant, Delay: 2 * time.Second, Max: time.Minute, Jitter: 0.5},
			Limits:  run.Limits{Memory: 1 << 30, Output: 1024, Fuel: 5_000_000_000},
		},
	}
	if diff := cmp.Diff(want, f.Tasks, cmpopts.IgnoreUnexported(Task{}), cmpopts.IgnoreTypes(hcl.Range{})); diff != "" {
		t.Error(diff)
	}
	if f.Description != "for f" || f.Timeout != 90*time.Minute {
		t.Errorf("%q %s", f.Description, f.Timeout)
	}
	edges := []Edge{{From: "plain", To: "own", Via: ViaAfter}, {From: "plain", To: "full", Via: ViaReference}, {From: "own", To: "full", Via: ViaReference}}
	if diff := cmp.Diff(edges, f.Edges(), cmpopts.IgnoreTypes(hcl.Range{})); diff != "" {
		t.Error(diff)
	}
	if up := f.Graph.Upstream(2); !cmp.Equal(up, []int{0, 1}) {
		t.Errorf("upstream of full: %v", up)
	}
}

func TestTriggers(t *testing.T) {
	t.Parallel()
	f := oneFlow(t, `
		flow "f" {
		  trigger "schedule" "night" {
		    cron     = "15 2 * * *"
		    timezone = "Europe/Berlin"
		  }
		  trigger "schedule" "often" {
		    every   = "90s"
		    enabled = false
		  }
		  trigger "schedule" "full" {
		    cron            = "0 9 1-7 * MON"
		    day_match       = "and"
		    dst             = "last"
		    timezone        = "America/New_York"
		    start           = "2026-01-01T00:00:00Z"
		    end             = "2027-01-01T00:00:00-05:00"
		    count           = 9
		    jitter          = "5m"
		    splay           = "hash"
		    misfire_after   = "2m"
		    catch_up        = "all"
		    catch_up_window = "3h"
		    catch_up_max    = 7
		    overlap         = "queue"
		    overlap_max     = 4
		    pause_after     = 3
		  }
		  trigger "message" "core" {
		    subject = "orders.*.created.>"
		  }
		  trigger "message" "stream" {
		    subject = "orders.created"
		    stream  = "ORDERS"
		    durable = "flow-host"
		  }
		  task "t" {
		    plugin = "./greet.wasm"
		  }
		}`)
	want := []*Trigger{
		{Name: "night", Kind: run.TriggerSchedule, Enabled: true, Spec: "15 2 * * *", Zone: "Europe/Berlin",
			Identity: "15 2 * * *, Europe/Berlin, dst cron", Overlap: OverlapSkip, OverlapMax: DefaultOverlapMax},
		{Name: "often", Kind: run.TriggerSchedule, Spec: "90s", Zone: "UTC",
			Identity: "every 1m30s, UTC, dst cron", Overlap: OverlapSkip, OverlapMax: DefaultOverlapMax},
		{
			Name: "full", Kind: run.TriggerSchedule, Enabled: true, Spec: "0 9 1-7 * MON", Zone: "America/New_York",
			Identity: "0 9 1-7 * 1 from 2026-01-01T00:00:00Z until 2027-01-01T00:00:00-05:00, America/New_York, dst last, day_match and",
			Jitter:   scheduler.Jitter{Max: 5 * time.Minute, Stable: true, Name: "f/full"},
			Policy:   scheduler.Policy{MisfireAfter: 2 * time.Minute, CatchUp: scheduler.CatchUpAll, Window: 3 * time.Hour, Max: 7},
			Overlap:  OverlapQueue, OverlapMax: 4, Count: 9, PauseAfter: 3, CatchUpStated: true,
		},
		{Name: "core", Kind: run.TriggerMessage, Enabled: true, Subject: "orders.*.created.>"},
		{Name: "stream", Kind: run.TriggerMessage, Enabled: true, Subject: "orders.created", Stream: "ORDERS", Durable: "flow-host"},
	}
	if diff := cmp.Diff(want, f.Triggers, cmpopts.IgnoreUnexported(Trigger{}), cmpopts.IgnoreFields(Trigger{}, "Schedule", "Range")); diff != "" {
		t.Error(diff)
	}
	after := time.Date(2026, 3, 8, 0, 0, 0, 0, time.UTC)
	for name, want := range map[string]string{"night": "2026-03-08T01:15:00Z", "often": "2026-03-08T00:01:30Z", "full": "2026-04-06T13:00:00Z"} {
		next, ok := f.Trigger(name).Schedule.Next(after)
		if got := next.UTC().Format(time.RFC3339); !ok || got != want {
			t.Errorf("%s: %s %v", name, got, ok)
		}
	}
}

func TestReferencesInsideForExpressionsAndSplats(t *testing.T) {
	t.Parallel()
	f := oneFlow(t, `
		flow "f" {
		  task "a" {
		    plugin = "./greet.wasm"
		  }
		  task "b" {
		    plugin = "./greet.wasm"
		    input  = [for task, run in { x = task.a.output } : { n = task, v = run }]
		  }
		  task "c" {
		    plugin = "./greet.wasm"
		    input  = { list = task.b.output[*].v.items[0], text = "${length([for i, x in task.b.output : i if x.n != ""])}." }
		  }
		}`)
	edges := []Edge{{From: "a", To: "b", Via: ViaReference}, {From: "b", To: "c", Via: ViaReference}}
	if diff := cmp.Diff(edges, f.Edges(), cmpopts.IgnoreTypes(hcl.Range{})); diff != "" {
		t.Error(diff)
	}
	s := f.Scope(aRun(f, "", nil))
	s.Settle(done("a", `{"items":["i"]}`))
	b := input(t, f.task(t, "b"), s)
	s.Settle(done("b", b))
	if got := input(t, f.task(t, "c"), s); b != `[{"n":"x","v":{"items":["i"]}}]` || got != `{"list":["i"],"text":"1."}` {
		t.Error(b, got)
	}
}

func TestLocalsCarryEdges(t *testing.T) {
	t.Parallel()
	f := oneFlow(t, `
		flow "f" {
		  locals {
		    two = [local.one, task.b.output]
		    one = task.a.output
		  }
		  task "c" {
		    plugin = "./greet.wasm"
		    when   = local.two != null
		  }
		  task "a" {
		    plugin = "./greet.wasm"
		  }
		  task "b" {
		    plugin = "./greet.wasm"
		    config = { x = local.one }
		  }
		}`)
	want := []Edge{
		{From: "a", To: "c", Via: ViaReference}, {From: "b", To: "c", Via: ViaReference}, {From: "a", To: "b", Via: ViaReference},
	}
	if diff := cmp.Diff(want, f.Edges(), cmpopts.IgnoreTypes(hcl.Range{})); diff != "" {
		t.Error(diff)
	}
}

func TestWithoutACatalog(t *testing.T) {
	t.Parallel()
	set, diags := Load(t.Context(), []string{"testdata/examples"}, Options{})
	if len(diags) > 0 || len(set.Flows) != 2 || set.Flow("hello").Tasks[0].Plugin.Digest != "" {
		t.Error(text(set, diags))
	}
}
