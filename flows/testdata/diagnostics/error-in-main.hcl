flow "a" {
  task "t" {
    plugin = "./greet.wasm"
    input  = error.message
  }
  task "u" {
    plugin = "./greet.wasm"
    after  = [task.alert]
    input  = task.alert.output
  }
  on_failure {
    task "alert" {
      plugin = "./greet.wasm"
      after  = [task.t]
    }
  }
}
