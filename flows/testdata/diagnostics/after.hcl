flow "a" {
  task "t" {
    plugin = "./greet.wasm"
    after  = task.u
  }
  task "u" {
    plugin = "./greet.wasm"
    after  = ["u", task.t.output, var.x]
  }
}
