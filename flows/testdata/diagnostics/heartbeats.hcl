flow "f" {
  task "short" {
    plugin    = "./greet.wasm"
    heartbeat = "10ms"
  }
  task "long" {
    plugin    = "./greet.wasm"
    timeout   = "5s"
    heartbeat = "5s"
  }
  task "other" {
    flow      = flow.g
    heartbeat = "5s"
  }
  task "elsewhere" {
    plugin = "./greet.wasm"

    grant {
      connections = [connection.of_the_settings]
    }
  }
}

flow "g" {
  task "a" {
    plugin    = "./greet.wasm"
    heartbeat = "5s"
  }
}
