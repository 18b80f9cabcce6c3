variable "token" {
  default   = "t"
  sensitive = true
}

flow "a" {
  task "t" {
    plugin = "./greet.wasm"
  }
  wait "nothing" {
    timeout = "1h"
  }
  wait "no_signal" {
    signal = false
  }
  wait "both" {
    duration = "1h"
    until    = "2026-12-24T18:00:00Z"
  }
  wait "too_short" {
    duration = "-1s"
  }
  wait "unit" {
    duration = 5
  }
  wait "long" {
    duration = "1000000h"
  }
  wait "tomorrow" {
    until = "tomorrow"
  }
  wait "any_order" {
    subject = "orders.*"
  }
  wait "shown" {
    approval = "Spend ${var.token}?"
  }
  wait "of_what" {
    approval = ""
  }
  wait "patient" {
    signal  = true
    timeout = "${param.n}h"
  }
  wait "misspelt" {
    aproval = "?"
    input   = 1
    retries = 1
  }
  wait "list" {
    subject = ["a", "b"]
  }
  param "n" {
    type = number
  }
}
