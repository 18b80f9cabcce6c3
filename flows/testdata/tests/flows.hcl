variable "limit" {
  type    = number
  default = 3
}

variable "token" {
  type      = string
  default   = "t-1"
  sensitive = true
}

locals {
  url = "https://example.com"
}

plugin "typed" {
  source = "./typed.wasm"
}

flow "orders" {
  param "count" {
    type    = number
    default = 1
  }
  trigger "message" "created" {
    subject = "orders.created"
  }
  trigger "schedule" "nightly" {
    cron = "@daily"
  }
  task "fetch" {
    plugin   = plugin.typed
    function = "fetch"
    input    = { url = local.url, count = param.count }
  }
  task "greet" {
    plugin = "./greet.wasm"
    input  = task.fetch.output.name
  }
  finally {
    task "sweep" {
      plugin = "./greet.wasm"
    }
  }
}

flow "returns" {
  task "greet" {
    plugin = "./greet.wasm"
  }
}

flow "release" {
  task "build" {
    plugin = "./greet.wasm"
  }
  task "copy" {
    for_each = ["eu", "us"]
    plugin   = "./greet.wasm"
  }
  wait "approval" {
    approval = "release it?"
  }
  wait "cutoff" {
    signal = true
  }
  group "all" {
    wait "cool" {
      duration = "1h"
    }
    task "ship" {
      flow = flow.ship
    }
  }
}

flow "ship" {
  wait "arrived" {
    subject = "shipped"
  }
  task "send" {
    plugin = "./greet.wasm"
    input  = wait.arrived.payload
  }
  output "at" {
    value = "${wait.arrived.payload} here"
  }
}
