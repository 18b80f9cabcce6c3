flow "a" {
  task "t" {
    plugin = "./greet.wasm
  }
}
