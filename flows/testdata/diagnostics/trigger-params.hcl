variable "nightly" {
  default = { count = "many", region = "eu" }
}

flow "a" {
  labels = { team = "shop" }
  param "count" {
    type = number
    validation {
      condition     = param.count > 0
      error_message = "Something must be counted."
    }
  }
  param "region" {
    type = string
  }
  trigger "schedule" "without" {
    every = "1h"
  }
  trigger "schedule" "half" {
    every  = "1h"
    params = { count = 1 }
  }
  trigger "schedule" "misspelt" {
    every  = "1h"
    params = { count = 1, regoin = "eu" }
  }
  trigger "schedule" "wrong" {
    every  = "1h"
    params = { count = "many", region = "eu" }
  }
  trigger "schedule" "refused" {
    every  = "1h"
    params = { count = -1, region = "eu" }
  }
  trigger "schedule" "elsewhere" {
    every  = "1h"
    params = var.nightly
  }
  trigger "schedule" "payload" {
    every  = "1h"
    params = { count = 1, region = trigger.payload.region }
  }
  trigger "schedule" "off" {
    every   = "1h"
    enabled = false
  }
  trigger "message" "short" {
    subject = "a.short"
    payload = object({ count = number })
  }
  trigger "message" "other" {
    subject = "a.other"
    payload = object({ count = list(number), region = string })
  }
  trigger "message" "anything" {
    subject = "a.anything"
    params  = { count = trigger.payload.count }
  }
  task "t" {
    plugin = "./greet.wasm"
    input  = { team = run.labels.taem, name = try(run.labels.name, "none") }
  }
}
