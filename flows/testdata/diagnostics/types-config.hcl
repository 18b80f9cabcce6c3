plugin "typed" {
  source = "./typed.wasm"
  config = { region = 7 }
}

flow "a" {
  task "a" {
    plugin   = plugin.typed
    function = "fetch"
    input    = { url = "u" }
    config   = { regoin = "north", retries = run.id }
  }

  task "b" {
    plugin   = plugin.typed
    function = "store"
    input    = { count = 1 }
  }

  task "c" {
    plugin   = plugin.typed
    function = "store"
    input    = { count = 1 }
    config   = { tabel = "t" }
  }
}
