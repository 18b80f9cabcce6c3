flow "a" {
  param "which" {
  }
  task "t" {
    plugin = "./greet.wasm"
  }
  task "u" {
    plugin = "./greet.wasm"
    input  = task[param.which].output
  }
  task "v" {
    plugin = "./greet.wasm"
    input  = task.*.output
  }
}
