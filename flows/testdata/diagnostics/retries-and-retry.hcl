flow "a" {
  task "t" {
    plugin  = "./greet.wasm"
    retries = 2
    retry {
      delay = "1s"
    }
  }
}
