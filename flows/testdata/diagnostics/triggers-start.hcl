flow "import" {
  task "read" {
    plugin   = "./greet.wasm"
    function = "greet"
    input    = { name = "x" }
  }
  output "rows" {
    value = 12
  }
}

flow "report" {
  param "rows" { type = number }
  param "name" { type = string }

  trigger "flow" "typo" {
    after = flow.imports
  }
  trigger "flow" "nothing" {}
  trigger "flow" "ends" {
    after = flow.import
    on    = ["succeeded", "fail"]
  }
  trigger "flow" "none" {
    after = flow.import
    on    = []
  }
  trigger "flow" "rows" {
    after  = flow.import
    filter = trigger.payload.output.row > 1
    params = { rows = trigger.payload.output.rows, nam = trigger.payload.flow }
  }
  trigger "flow" "payload" {
    after  = flow.import
    params = { rows = trigger.payload.rows, name = trigger.payload.run }
  }
  trigger "flow" "fine" {
    after  = "import"
    on     = ["failed"]
    filter = trigger.payload.error.outcome != "canceled"
    params = { rows = trigger.payload.output.row, name = trigger.payload.flow }
  }
  trigger "flow" "extra" {
    after   = flow.import
    subject = "a.b"
  }
  task "print" {
    plugin   = "./greet.wasm"
    function = "greet"
    input    = { name = param.name }
  }
}

flow "ping" {
  trigger "flow" "pong" {
    after = flow.pong
  }
  task "t" {
    plugin   = "./greet.wasm"
    function = "greet"
    input    = { name = "x" }
  }
}

flow "pong" {
  trigger "flow" "ping" {
    after = flow.ping
    on    = ["succeeded", "failed"]
  }
  task "t" {
    plugin   = "./greet.wasm"
    function = "greet"
    input    = { name = "x" }
  }
}

flow "retried" {
  trigger "flow" "itself" {
    after  = flow.retried
    filter = trigger.payload.state == "succeeded"
  }
  trigger "flow" "once" {
    after = flow.retried
    on    = ["failed"]
  }
  task "t" {
    plugin   = "./greet.wasm"
    function = "greet"
    input    = { name = "x" }
  }
}

flow "params" {
  param "n" { type = number }
  trigger "schedule" "missing" { every = "1h" }
  trigger "schedule" "wrong" {
    every  = "1h"
    params = { n = "x" }
  }
  trigger "schedule" "payload" {
    every  = "1h"
    params = { n = trigger.payload.n }
  }
  trigger "schedule" "guarded" {
    every  = "1h"
    params = { n = trigger.payload == null ? 1 : trigger.payload.n }
  }
  trigger "schedule" "by_hand" {
    every   = "1h"
    enabled = false
  }
  trigger "message" "brings_it" { subject = "a.b" }
  trigger "flow" "nothing" { after = flow.import }
  task "t" {
    plugin   = "./greet.wasm"
    function = "greet"
    input    = { name = "x" }
  }
}
