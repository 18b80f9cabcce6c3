flow "hello" {
  task "greet" {
    plugin = "../../hello/greet.wasm"
    input  = { name = "world" }
  }
}
