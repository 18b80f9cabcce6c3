plugin "typed" {
  source = "./typed.wasm"
}

flow "a" {
  task "fetch" {
    plugin   = plugin.typed
    function = "fetch"
    input    = { urll = "https://example.com", cuont = 3 }
  }

  task "score" {
    plugin   = plugin.typed
    function = "score"
    input    = { total = 1 }
  }

  task "store" {
    plugin   = plugin.typed
    function = "store"
    input    = { "${run.id}" = 1, lines = [{ price = "3" }] }
  }

  task "nothing" {
    plugin   = plugin.typed
    function = "fetch"
  }
}
