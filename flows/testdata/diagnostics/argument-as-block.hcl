flow "a" {
  task "t" {
    plugin = "./greet.wasm"
    input {
      name = "x"
    }
  }
}
