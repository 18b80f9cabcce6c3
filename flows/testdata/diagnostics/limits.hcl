limit "api" {
  concurrency = 4
  rate        = "10/s"
}

limit "none" {
}

limit "few" {
  concurrency = 0
}

limit "quick" {
  rate = "10 per second"
}

limit "many" {
  rate = "10001/s"
}

limit "daily" {
  rate = "5/d"
}

limit "monthly" {
  rate = "1000/720h"
}

limit "api" {
  rate = "1/s"
}

limit "late" {
  rate = param.rate
}

flow "a" {
  param "rate" {
    default = "1/s"
  }

  task "t" {
    plugin = "./greet.wasm"
    limit  = limit.apo
  }

  task "u" {
    plugin = "./greet.wasm"
    limit  = [limit.api, limit.daily, limit.api]
  }

  task "v" {
    plugin = "./greet.wasm"
    limit  = "api"
    input  = { at_once = limit.api.concurrency }
  }

  task "w" {
    plugin  = "./greet.wasm"
    limit   = [limit.api.rate, plugin.p, true ? limit.api : limit.daily]
    timeout = limit.api
  }
}
