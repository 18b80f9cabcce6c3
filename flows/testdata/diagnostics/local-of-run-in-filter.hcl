flow "a" {
  locals {
    ok = task.t.output.ok
  }
  trigger "message" "m" {
    subject = "x"
    filter  = local.ok
  }
  task "t" {
    plugin = "./greet.wasm"
  }
}
