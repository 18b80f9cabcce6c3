plugin "typed" {
  source = "./typed.wasm"
}

flow "a" {
  task "fetch" {
    plugin   = plugin.typed
    function = "fetch"
    input    = { url = "https://example.com" }
  }

  on_failure {
    task "alert" {
      plugin   = plugin.typed
      function = "store"
      config   = { table = error.task }
      input    = { count = error.message, lines = [{ sku = task.fetch.output.nam }] }
    }
  }
}
