plugin "typed" {
  source = "./typed.wasm"
}

flow "a" {
  param "note" {
    type    = string
    default = null
  }
  param "who" {
    type = string
  }
  param "shop" {
    type = object({ city = optional(string), currency = optional(string, "EUR") })
  }
  trigger "message" "m" {
    subject = "a.b"
    payload = object({ id = string, note = optional(string), lines = optional(object({ first = string })) })
    params  = { who = trigger.payload.note, shop = {} }
  }
  trigger "schedule" "s" {
    cron   = "0 1 * * *"
    params = { who = "s", shop = {} }
  }
  task "fetch" {
    plugin   = plugin.typed
    function = "fetch"
    input    = { url = "${run.previous_success_at} ${trigger.subject} ${param.note} ${param.who} ${param.shop.city} ${trigger.payload.note} ${trigger.payload.lines.first}" }
  }
  task "express" {
    when   = trigger.payload.id != ""
    plugin = "./greet.wasm"
    input  = "of ${task.fetch.output.note}"
  }
  task "both" {
    plugin = "./greet.wasm"
    after  = [task.fetch]
    input  = "of ${task.express.output.text}"
  }
  task "soft" {
    on_error = "continue"
    plugin   = "./greet.wasm"
  }
  task "after_soft" {
    plugin = "./greet.wasm"
    input  = "of ${task.soft.output.text}, ${task.soft.error.message}"
    retry {
      attempts = 2
      when     = "of ${error.details}" != ""
    }
  }
  wait "asked" {
    approval = "${task.soft.output.question}?"
  }
  task "approved" {
    plugin = "./greet.wasm"
    input  = "by ${wait.asked.payload.by}"
  }
  task "sorry" {
    run_on = "failure"
    plugin = "./greet.wasm"
    input  = "${task.fetch.output.name} and ${task.soft.state}"
  }
  group "notify" {
    mode = "first_success"
    task "chat" {
      plugin = "./greet.wasm"
    }
    task "mail" {
      plugin = "./greet.wasm"
    }
  }
  output "mail" {
    value = "by ${task.mail.output.id}"
  }
  on_failure {
    task "alert" {
      plugin = "./greet.wasm"
      input  = "${error.task}: ${task.fetch.output.name} ${task.fetch.error.message}"
    }
  }
}

flow "by_hand" {
  task "t" {
    plugin = "./greet.wasm"
    input  = "for ${trigger.name}"
  }
}
