flow "a" {
  task "fetch" {
    plugin = "./greet.wasm"
  }
  task "score" {
    plugin = "./greet.wasm"
    input  = [task.fetch.body, task.fetch.outptu.x, task.fetch, task["fetch"].output]
    when   = task.fetch["stat"] == "x"
  }
}
