plugin "typed" {
  source = "./typed.wasm"
}

flow "a" {
  param "on" {
    type = bool
  }
  trigger "message" "m" {
    subject = "a.b"
    payload = object({ id = number, on = bool })
    filter  = trigger.payload.id == "7"
  }
  task "fetch" {
    plugin   = plugin.typed
    function = "fetch"
    input    = { url = "https://example.com" }
  }
  task "t" {
    plugin = "./greet.wasm"
    when   = task.fetch.state == "success"
    input = {
      switch  = param.on == "true"
      kind    = trigger.kind == "cron"
      outcome = try(task.fetch.error.outcome, "") == "timeout"
      failed  = task.fetch.error.outcome == "timeout"
      total   = "5" != task.fetch.output.total
      null    = task.fetch.output.total == null
      name    = task.fetch.output.name == "anything"
      state   = task.fetch.state == "skipped"
    }
    retry {
      attempts = 2
      when     = error.outcome == "timeout"
    }
  }
}
