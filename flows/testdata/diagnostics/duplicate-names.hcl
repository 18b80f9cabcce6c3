variable "v" {
  default = 1
}

variable "v" {
  default = 2
}

locals {
  l = 1
}

locals {
  l = 2
}

flow "a" {
  param "p" {
  }
  param "p" {
  }
  locals {
    l = 3
  }
  task "t" {
    plugin = "./greet.wasm"
  }
  task "t" {
    plugin = "./greet.wasm"
  }
  output "o" {
    value = 1
  }
  output "o" {
    value = 2
  }
  on_failure {
    task "t" {
      plugin = "./greet.wasm"
    }
  }
  trigger "schedule" "s" {
    every  = "1h"
    params = { p = 1 }
  }
  trigger "message" "s" {
    subject = "a"
  }
}

flow "a" {
  task "t" {
    plugin = "./greet.wasm"
  }
}
