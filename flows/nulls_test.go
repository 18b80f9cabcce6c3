package flows

import "testing"

// TestNoFalseAlarmsOfNulls loads templates that look like those of nulls.hcl in
// testdata/diagnostics and are never evaluated with a null, or may not be.
func TestNoFalseAlarmsOfNulls(t *testing.T) {
	t.Parallel()
	dir := folder(t, map[string]string{"f.hcl": `
plugin "typed" {
  source = "./typed.wasm"
}
flow "a" {
  param "note" {
    type    = string
    default = null
  }
  param "checked" {
    type = object({ city = optional(string) })
    validation {
      condition     = param.checked.city != null
      error_message = "A city is missing."
    }
  }
  trigger "message" "m" {
    subject = "a.b"
    payload = object({ id = string, note = optional(string), tag = optional(string, "none") })
    filter  = trigger.payload.note != null
    params  = { checked = { city = trigger.payload.note } }
  }
  task "first" {
    plugin   = plugin.typed
    function = "fetch"
    input    = { url = "${trigger.subject} ${trigger.name} ${trigger.payload.note} ${trigger.payload.tag} ${param.checked.city} ${run.id}" }
  }
  task "branches" {
    plugin = "./greet.wasm"
    input = [
      param.note == null ? "none" : "some ${param.note}", "${coalesce(param.note, "none")}",
      try("${task.first.output.note}", "none"), "${task.first.output.name}",
    ]
  }
  task "asked" {
    when   = param.note != null && task.first.output.note != null
    plugin = "./greet.wasm"
    input  = "${param.note} ${task.first.output.note}"
  }
  task "skipped_too" {
    plugin = "./greet.wasm"
    input  = "${task.asked.output.text} ${task.asked.state}"
  }
  task "both_skipped" {
    plugin = "./greet.wasm"
    after  = [task.skipped_too]
    input  = "${task.asked.output.text}"
  }
  task "same_condition" {
    when   = param.note != null
    plugin = "./greet.wasm"
    input  = "${task.asked.output.text} ${task.first.output.name}"
  }
  task "items" {
    for_each = task.asked.state == "succeeded" ? ["a"] : []
    plugin   = "./greet.wasm"
    input    = "${task.asked.output.text} ${task.first.output.name} ${each.value}"
  }
  task "sorry" {
    run_on = "failure"
    plugin = "./greet.wasm"
    input  = "${task.first.error.message}"
  }
  group "notify" {
    mode = "first_success"
    task "chat" {
      plugin = "./greet.wasm"
      input  = task.first.output
    }
    task "mail" {
      plugin = "./greet.wasm"
      run_on = "always"
      input  = "${task.chat.error.message}"
    }
  }
  output "name" {
    value = "${task.first.output.name} ${task.sorry.state}"
  }
  on_success {
    task "cheer" {
      plugin = "./greet.wasm"
      input  = "${task.first.output.name}"
    }
  }
  on_failure {
    task "alert" {
      when   = task.first.state == "succeeded"
      plugin = "./greet.wasm"
      input  = "${task.first.output.name} ${error.task} ${error.message} ${error.code} ${error.outcome} ${error.attempt}"
    }
  }
  finally {
    task "sweep" {
      plugin = "./greet.wasm"
      input  = "${error.task} ${error.message} ${task.alert.state}"
    }
  }
}`})
	set, diags := Load(t.Context(), []string{dir}, Options{Catalog: modules})
	if len(diags) > 0 {
		t.Error(rendered(t, set, diags))
	}
}
