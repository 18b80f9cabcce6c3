defaults {
  retries = 1
}

defaults {
  timeout = "1s"
}

flow "a" {
  task "t" {
    plugin = "./greet.wasm"
    retry {
      attempts = 2
    }
    retry {
      attempts = 3
    }
  }
}
