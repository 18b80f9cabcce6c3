flow "hello" {
  task "greet" {
    plugin = "./greet.wasm"
    input  = { name = "world" }
  }
}
