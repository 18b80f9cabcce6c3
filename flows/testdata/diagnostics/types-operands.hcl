plugin "typed" {
  source = "./typed.wasm"
}

flow "a" {
  task "fetch" {
    plugin   = plugin.typed
    function = "fetch"
    input    = { url = "https://example.com" }
  }

  task "use" {
    plugin = "./run.wasm"
    when   = task.fetch.output.total
    input  = {
      a = task.fetch.output.items + 1
      b = "all: ${task.fetch.output.items}"
      c = !task.fetch.output.total
      d = task.fetch.output.items ? 1 : 2
      e = task.fetch.output > 1
      f = [for i in task.fetch.output.items : i if i.price]
    }
  }
}
