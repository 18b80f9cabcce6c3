plugin "typed" {
  source = "./typed.wasm"
}

flow "a" {
  task "fetch" {
    plugin   = plugin.typed
    function = "fetch"
    input    = { url = "https://example.com" }
  }
  task "again" {
    plugin   = plugin.typed
    function = "fetch"
    input    = run.id == "x" ? { urll = "u" } : { url = task.fetch.output.items }
  }
  task "words" {
    plugin   = plugin.typed
    function = "fetch"
    input    = { url = "u", mode = run.id == "x" ? "fast" : "ful" }
  }
  task "score" {
    plugin   = plugin.typed
    function = "score"
    input = {
      total = run.id == "x" ? (run.flow == "y" ? 1 : task.fetch.output.items[*].price) : 2
      skus  = run.id == "x" ? task.fetch.output.name : task.fetch.output.items[*].sku
    }
  }
  task "plain" {
    plugin = "./greet.wasm"
    input  = run.id == "x" ? 1 : task.fetch.output.items
    when   = (run.id == "x" ? true : 1) && run.flow == "a"
  }
}
