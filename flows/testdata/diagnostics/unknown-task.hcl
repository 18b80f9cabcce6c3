flow "a" {
  task "fetch" {
    plugin = "./greet.wasm"
  }
  task "score" {
    plugin = "./greet.wasm"
    input  = task.fecth.output
    after  = [task.fetchh]
  }
}
