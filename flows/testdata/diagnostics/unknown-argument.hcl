flow "a" {
  task "t" {
    plugin  = "./greet.wasm"
    timeuot = "5s"
    colour  = "red"
  }
}
