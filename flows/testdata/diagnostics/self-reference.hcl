flow "a" {
  locals {
    mine = task.t.output
  }
  task "t" {
    plugin = "./greet.wasm"
    input  = task.t.output
  }
  task "u" {
    plugin = "./greet.wasm"
    after  = [task.u]
  }
}
