flow "a" {
  locals {
    of_b = task.b.output
  }
  task "a" {
    plugin = "./greet.wasm"
    input  = local.of_b
  }
  task "b" {
    plugin = "./greet.wasm"
    input  = task.a.output
  }
  task "c" {
    plugin = "./greet.wasm"
    input  = local.self
  }
  locals {
    self = task.c.output
  }
}
