variable "code" {
  default = "busy"
}

locals {
  codes = [var.code]
}

defaults {
  retry {
    when = contains(local.codes, error.cod) || task.t.output.again || param.n || trigger.paylod == 1 || flow.name == "a"
  }
}

flow "a" {
  priority = 101
  param "n" {
  }
  locals {
    again = task.u.output.again
    fine  = param.n == trigger.payload
  }
  defaults {
    retry {
      when = local.fine || local.again || error.task == "x" || task.t.state == "x" || param.m
    }
  }
  task "t" {
    plugin   = "./greet.wasm"
    priority = -100.5
    retry {
      when = "often"
    }
  }
  task "u" {
    plugin   = "./greet.wasm"
    priority = task.t.output
    retry {
      attempts = error.attempt
      when     = task.u.output || error.retriable || local.codess
    }
  }
  task "v" {
    plugin = "./greet.wasm"
    when   = error.retryable
    retry {
      when = task.w.output
    }
  }
  task "w" {
    plugin = "./greet.wasm"
    retry {
      when = error.retryable && task.v.output
    }
  }
  task "x" {
    plugin = "./greet.wasm"
    retry {
      when = task.x.attempts < 3
    }
  }
}
