plugin "wanting" {
  source = "./wanting.wasm"
}

plugin "answered" {
  source = "./wanting.wasm"
  grant {}
}

plugin "granted" {
  source = "./wanting.wasm"
  grant {
    files = { "./out" = "rw" }
  }
}

plugin "unused" {
  source = "./wanting.wasm"
}

plugin "content" {
  source = "./greet.wasm"
}

flow "f" {
  task "one" {
    plugin = plugin.wanting
  }
  task "two" {
    plugin = plugin.wanting
  }
  task "without" {
    plugin = plugin.wanting
    grant {}
  }
  task "answered" {
    plugin = plugin.answered
  }
  task "granted" {
    plugin = plugin.granted
  }
  task "narrowed" {
    plugin = plugin.granted
    grant {}
  }
  task "path" {
    plugin = "./wanting.wasm"
  }
  task "path_granted" {
    plugin = "./wanting.wasm"
    grant {
      files = { "./out" = "ro" }
    }
  }
  task "content" {
    plugin = plugin.content
  }
}
