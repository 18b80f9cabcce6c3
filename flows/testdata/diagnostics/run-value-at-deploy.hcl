locals {
  now = run.id
}

plugin "p" {
  source = "./${param.which}.wasm"
}

flow "a" {
  timeout = param.limit
  param "limit" {
    default = run.id
  }
  locals {
    patience = "${param.limit}s"
  }
  trigger "schedule" "s" {
    cron = trigger.payload.cron
  }
  task "t" {
    plugin  = "./greet.wasm"
    timeout = task.u.output.timeout
    retries = local.patience
  }
  task "u" {
    plugin = "./greet.wasm"
  }
}
