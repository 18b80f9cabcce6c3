plugin "typed" {
  source = "./typed.wasm"
}

flow "a" {
  labels = { x = "y" }
  task "fetch" {
    plugin   = plugin.typed
    function = "fetch"
    input    = { url = "https://example.com" }
    when     = run.labels.x == "y"
  }

  task "score" {
    plugin   = plugin.typed
    function = "score"
    input = {
      skus  = run.id == "x" ? task.fetch.output.name : null
      total = run.id == "x" ? task.fetch.output.name : "none"
    }
  }

  task "second" {
    plugin   = plugin.typed
    function = "score"
    input    = coalesce(task.fetch.output, task.score.output)
  }

  task "third" {
    plugin   = plugin.typed
    function = "score"
    input    = { skus = [], total = coalesce(task.fetch.output.name, "none") }
  }
}
