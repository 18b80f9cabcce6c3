flow "a" {
  task "t" {
    plugin = "./greet.wasm"
    retry = {
      attempts = 3
    }
  }
  concurrency = {
    limit = 1
  }
}
