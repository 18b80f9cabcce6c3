package flowtest

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/flowhost/flowhost/flows"
)

// performIn runs the body of a test of the first flow of a file. What begins with
// a mock after the flows belongs to the file of tests.
func performIn(t *testing.T, flow, body string) *Result {
	t.Helper()
	flow, shared, _ := strings.Cut(flow, "\nmock")
	if shared != "" {
		shared = "mock" + shared
	}
	name, _, _ := strings.Cut(flow[strings.Index(flow, "flow \"")+len("flow \""):], "\"")
	folder := t.TempDir()
	for file, content := range map[string]string{
		"f.hcl": flow, "f.test.hcl": shared + "\ntest \"t\" {\n  flow = \"" + name + "\"\n" + body + "\n}\n",
	} {
		if err := os.WriteFile(filepath.Join(folder, file), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	s, diags := flows.LoadTests(t.Context(), []string{folder}, flows.Options{})
	if diags.HasErrors() {
		t.Fatal(diags)
	}
	r, err := Run(t.Context(), s.Set, s.Tests[0], Config{Invoker: echo{}})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func passing(t *testing.T, flow string, tests map[string]string) {
	t.Helper()
	for name, body := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if r := performIn(t, flow, body); !r.Passed() {
				t.Error(r.Problems)
				for _, task := range r.Runs[0].Tasks {
					t.Logf("%s %v %s x%d %s %v", task.Task, task.Key, task.State, task.Attempts, task.Output, task.Error)
				}
			}
		})
	}
}

// wrong is a test that fails, and how its first problem is told.
type wrong struct{ body, want string }

func failing(t *testing.T, flow string, tests map[string]wrong) {
	t.Helper()
	for name, c := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := performIn(t, flow, c.body)
			if r.Passed() {
				t.Fatal("it passed")
			}
			d := r.Problems[0]
			if said := d.Summary + ": " + d.Detail; !regexp.MustCompile(c.want).MatchString(said) {
				t.Errorf("%s\nis not %s", said, c.want)
			}
		})
	}
}

const copies = `
plugin "shop" {
  source = "./shop.wasm"
}
flow "copies" {
  param "regions" {
    type    = map(string)
    default = { eu = "a", us = "b" }
  }
  task "find" {
    for_each = param.regions
    plugin   = plugin.shop
    timeout  = "2h"
    input    = { host = each.value }
  }
  task "copy" {
    for_each = flatten([for r, t in task.find.output : t])
    on_error = "continue"
    retries  = 2
    plugin   = plugin.shop
    input    = each.value
  }
  group "tell" {
    mode = "first_success"
    task "chat" {
      plugin = plugin.shop
      input  = "${length(task.copy.errors)} failed"
    }
    group "letters" {
      task "mail" {
        plugin = plugin.shop
      }
      wait "sent" {
        signal  = true
        timeout = "2h"
        after   = [task.mail]
      }
    }
  }
  on_failure {
    group "alarm" {
      task "page" {
        plugin = plugin.shop
      }
    }
  }
}

mock "find" {
  output = each.key == "eu" ? ["orders", "items"] : ["audit"]
}
mock "chat" {}
mock "mail" {
  output = "posted"
}
mock "page" {}
`

func TestFanOuts(t *testing.T) {
	t.Parallel()
	passing(t, copies, map[string]string{
		"items": `
  mock "copy" {
    output = { key = each.key, index = each.index, same = each.value == input, attempt = attempt }
    fail   = { message = "closed" }
    times  = 1
  }
  assert {
    condition = task.find.output == { eu = ["orders", "items"], us = ["audit"] } && task.find.items["eu"].output == task.find.output.eu
  }
  assert {
    condition = task.find.items.us.input.host == "b" && task.find.errors == []
  }
  assert {
    condition = [for one in task.copy.output : one.index] == [0, 1, 2] && alltrue([for one in task.copy.output : one.same && one.key == one.index])
  }
  assert {
    condition = task.copy.items[*].attempts == [2, 2, 2] && task.copy.items[1].output.attempt == 2
  }`,
		"one that fails": `
  mock "copy" {
    output = each.value
    fail   = each.value == "items" ? { message = "locked", code = "lock" } : null
  }
  assert {
    condition = task.copy.output == ["orders", null, "audit"] && task.copy.state == "succeeded" && task.chat.input == "1 failed"
  }
  assert {
    condition = [for e in task.copy.errors : "${e.key} ${e.code} ${e.message}"] == ["1 lock locked"]
  }
  assert {
    condition = task.copy.items[*].attempts == [1, 3, 1] && task.copy.items[1].error.code == "lock" && task.copy.items[1].state == "failed"
  }`,
		"errors": `
  mock_plugin "shop" {
    output = "copied ${each.value}"
  }
  assert {
    condition = task.copy.state == "succeeded" && task.copy.output == ["copied orders", "copied items", "copied audit"]
  }`,
		"none": `
  params = { regions = {} }
  mock "copy" {
    fail = {}
  }
  assert {
    condition = task.find.output == {} && task.find.items == {} && task.copy.output == [] && task.copy.items == []
  }`,
		"not yet": `
  until = "1h"
  mock "find" {
    hangs = true
  }
  assert {
    condition = task.find.state == "running" && task.find.items.eu.state == "running" && task.copy.items == null && task.copy.errors == []
  }`,
	})
}

func TestGroups(t *testing.T) {
	t.Parallel()
	const copied = `
  mock "copy" {
    output = each.value
  }`
	passing(t, copies, map[string]string{
		"the first": copied + `
  mock "chat" {
    output = input
  }
  assert {
    condition = group.tell.output == "0 failed" && group.tell.state == "succeeded" && group.tell.error == null
  }
  assert {
    condition = group.letters.state == "skipped" && group.letters.output == null && wait.sent.state == "skipped"
  }
  assert {
    condition = group.alarm.state == "waiting" && task.page.state == "waiting"
  }`,
		"the second": copied + `
  mock "chat" {
    fail = { retryable = false }
  }
  signal "sent" {
    after   = "1h"
    payload = 5
  }
  assert {
    condition = group.tell.output == { mail = "posted", sent = 5 } && group.letters.output == group.tell.output
  }`,
		"neither": copied + `
  mock "chat" {
    fail = { message = "no room", retryable = false }
  }
  assert {
    condition = group.tell.state == "failed" && group.tell.error.task == "chat" && group.letters.error.outcome == "timed_out"
  }
  assert {
    condition = group.alarm.output == { page = null } && group.tell.output == null && runs[0].group.alarm.state == "succeeded"
  }`,
		"so far": copied + `
  until = "1h"
  mock "chat" {
    fail = { retryable = false }
  }
  assert {
    condition = group.tell.state == "running" && group.letters.state == "running" && group.alarm.state == "waiting"
  }`,
	})
}

const nested = `
plugin "shop" {
  source = "./shop.wasm"
}
flow "top" {
  task "release" {
    for_each = ["a", "b"]
    flow     = flow.release
    input    = { version = each.value }
    retries  = 2
  }
  task "after" {
    plugin = plugin.shop
    input  = task.release.output
  }
}
flow "release" {
  param "version" {
    type = string
  }
  task "build" {
    plugin = "./build.wasm"
    input  = param.version
  }
  task "ship" {
    flow  = flow.ship
    input = { what = task.build.output }
  }
  output "shipped" {
    value = task.ship.output.at
  }
}
flow "ship" {
  param "what" {
    type = string
  }
  wait "approval" {
    approval = "ship?"
  }
  task "send" {
    for_each = [param.what]
    plugin   = plugin.shop
    after    = [wait.approval]
  }
  output "at" {
    value = task.send.output[0]
  }
}

mock_plugin "shop" {
  output = input
}
`

func TestSubFlows(t *testing.T) {
	t.Parallel()
	passing(t, nested, map[string]string{
		"as a whole": `
  mock "release" {
    output = { shipped = "${each.key} ${input.version}" }
    fail   = { message = "no" }
    times  = 1
    takes  = "48h"
  }
  assert {
    condition = task.release.output == [{ shipped = "0 a" }, { shipped = "1 b" }] && task.after.input == task.release.output
  }
  assert {
    condition = task.release.items[*].attempts == [2, 2] && task.release.items[0].input == { version = "a" } && run.duration > 96 * 3600
  }
  assert {
    condition = length(runs) == 1
  }`,
		"within": `
  mock "release/build" {
    output = "built ${input}"
    takes  = input == "a" ? "1m" : "2m"
  }
  mock "release/ship/send" {
    output = "${each.value} by ship"
  }
  approve "release/ship/approval" {
    after = "3h"
  }
  assert {
    condition = task.release.output == [{ shipped = "built a by ship" }, { shipped = "built b by ship" }]
  }
  assert {
    condition = length(runs) == 1 && run.duration == 3 * 3600 && run.flow == "top"
  }`,
		"attempts within": `
  mock "release/build" {
    output = input
    fail   = input == "b" ? { message = "no ${attempt}" } : null
  }
  mock "release/ship" {
    output = { at = "here" }
  }
  assert {
    condition = task.release.items[*].state == ["succeeded", "failed"] && task.release.items[*].attempts == [1, 3]
  }
  assert {
    condition = task.release.items[0].output == { shipped = "here" } && endswith(task.release.errors[0].message, "failed in task build: no 1")
  }`,
		"of a plugin": `
  mock "release/build" {
    output = input
  }
  mock_plugin "shop" {
    output = "shop"
  }
  approve "release/ship/approval" {}
  assert {
    condition = task.after.output == "shop" && task.release.output == [{ shipped = "shop" }, { shipped = "shop" }] && run.duration == 0
  }`,
		"that hangs": `
  until = "1000h"
  mock "release" {
    hangs = true
  }
  assert {
    condition = task.release.state == "running" && task.release.items[0].attempts == 1
  }`,
	})
	failing(t, nested, map[string]wrong{
		"a wait within": {`
  mock "release/build" {
    output = input
  }`, `^The run is stuck: .* Write approve "release/ship/approval" \{\} in the test.$`},
		"an answer too early": {`
  until = "4h"
  mock "release/build" {
    takes  = "2m"
    output = input
  }
  approve "release/ship/approval" {
    after = "1m"
  }`, `^Nothing waits for this: 1m0s after the start of the run, the wait "release/ship/approval" is not open`},
		"a task that cannot be called": {`
  mock "release/build" {
    output = input.x
  }`, `^Unsupported attribute`},
	})
}

// TestMocksOfTheFileInSubFlows holds that a test that mocks within a sub-flow does
// not mean the mock of the whole.
func TestMocksOfTheFileInSubFlows(t *testing.T) {
	t.Parallel()
	passing(t, nested+`
mock "release" {
  output = { shipped = "whole" }
}
mock "release/ship" {
  output = { at = "shipped" }
}
mock "release/build" {
  output = "built"
}
`, map[string]string{
		"the whole": `
  mock "release" {
    output = { shipped = "mine" }
  }
  assert {
    condition = task.release.output[0].shipped == "mine"
  }`,
		"within": `
  mock "release/build" {
    output = "mine"
  }
  assert {
    condition = task.release.output[0].shipped == "shipped"
  }`,
		"neither": `
  assert {
    condition = task.release.output[0].shipped == "whole"
  }`,
	})
}
