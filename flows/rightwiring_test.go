package flows

import "testing"

// TestRightWiringIsNotQuestioned holds that what can be right is loaded without an
// error or a warning, however little the types say.
func TestRightWiringIsNotQuestioned(t *testing.T) {
	t.Parallel()
	for _, input := range []string{
		`merge(task.fetch.output, { more = 1 }, null)`,
		`upper(task.fetch.output.total)`,
		`join(",", toset(task.fetch.output.items[*].sku))`,
		`length(task.fetch.output) + length(task.fetch.output.name) + length(task.fetch.output.items)`,
		`max(task.fetch.output.items[*].price...)`,
		`flatten([for i in task.fetch.output.items : try(i.tags, [])])`,
		`{ for k, v in task.fetch.output : k => try(v.owner, v) }`,
		`task.fetch.output.items["0"].sku`,
		`element(task.fetch.output.items, -1).sku`,
		`task.fetch.output.extra[-1]`,
		`task.fetch.output.extra == 5 || task.fetch.output.extra == "x"`,
		`[for s in ["a"] : s == "b"]`,
		`run.id == "x" ? task.fetch.output.name : task.fetch.output.total`,
		`run.id == "x" ? { a = 1 } : { b = 2, c = 3 }`,
		`run.id == "x" ? ["a"] : toset(["b"])`,
		`run.id == "x" ? task.fetch.output.extra : task.fetch.output.items`,
		`task.fetch.output.extra == null ? "none" : task.fetch.output.extra.a.b[0]`,
		`local.mode == "other" || var.mode == "other"`,
		`local.options.a == null ? task.fetch.output.name : local.options.a.b`,
		`try(wait.night.payload.x, wait.news.payload.x)`,
		`try(run.labels.none, lookup(run.labels, "none", run.labels.team))`,
		`task.score.output.total`,
	} {
		t.Run(input, func(t *testing.T) {
			t.Parallel()
			load(t, map[string]string{"f.hcl": `
variable "mode" {
  default = "fast"
}
locals {
  mode    = var.mode
  options = { a = null }
}
plugin "typed" {
  source = "./typed.wasm"
}
flow "a" {
  labels = { team = "shop" }
  param "lines" {
    type    = map(object({ n = number, tags = optional(list(string)) }))
    default = {}
    validation {
      condition     = alltrue([for k, v in param.lines : v.tags == null ? true : length(v.tags) > 0])
      error_message = "Without tags: ${join(", ", keys(param.lines))}"
    }
  }
  trigger "schedule" "hourly" {
    every  = "1h"
    params = { lines = try(trigger.payload.lines, null) }
  }
  wait "night" {
    duration = "8h"
  }
  wait "news" {
    subject = "a.news"
  }
  task "fetch" {
    plugin   = plugin.typed
    function = "fetch"
    input    = run.id == "x" ? { url = 5 } : { url = "u" }
  }
  task "score" {
    plugin   = plugin.typed
    function = "score"
    input    = { skus = run.id == "x" ? task.fetch.output.items[*].sku : [], total = run.id == "x" ? 1 : null }
  }
  task "t" {
    plugin = "./greet.wasm"
    input  = ` + input + `
  }
}
`}, Options{})
		})
	}
}
