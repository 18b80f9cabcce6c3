plugin "typed" {
  source = "./typed.wasm"
}

flow "a" {
  param "label" {
    type = string
  }

  task "fetch" {
    plugin   = plugin.typed
    function = "fetch"
    input    = { url = "https://example.com" }
  }

  task "score" {
    plugin   = plugin.typed
    function = "score"
    input = {
      skus  = task.fetch.output.name
      total = task.fetch.output.items
    }
  }

  task "store" {
    plugin   = plugin.typed
    function = "store"
    config   = { table = "t" }
    input    = { count = param.label, lines = task.fetch.output.items }
  }

  task "whole" {
    plugin   = plugin.typed
    function = "score"
    input    = task.fetch.output
  }
}
