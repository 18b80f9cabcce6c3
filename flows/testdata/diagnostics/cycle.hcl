flow "a" {
  task "a" {
    plugin = "./greet.wasm"
    input  = task.c.output
  }
  task "b" {
    plugin = "./greet.wasm"
    when   = task.a.state == "succeeded"
  }
  task "c" {
    plugin = "./greet.wasm"
    after  = [task.b]
  }
}
