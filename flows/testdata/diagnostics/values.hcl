flow "a" {
  timeout = "5"
  labels  = ["x"]
  task "t" {
    plugin  = "./greet.wasm"
    run_on  = "sucess"
    timeout = "-1s"
    retries = 1.5
    limits {
      memory = "lots"
      output = -1
    }
  }
  task "u" {
    plugin = "./greet.wasm"
    retry {
      attempts = 0
      backoff  = "linear"
      jitter   = 2
      delay    = 5
      max      = ["1s"]
    }
  }
  concurrency {
    limit = 0
  }
}
