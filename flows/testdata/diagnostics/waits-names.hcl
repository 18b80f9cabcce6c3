flow "a" {
  task "t" {
    plugin = "./greet.wasm"
  }
  wait "t" {
    signal = true
  }
  wait "w" {
    signal = true
  }
  wait "w" {
    signal = true
  }
  on_failure {
    task "w" {
      plugin = "./greet.wasm"
    }
  }
}
