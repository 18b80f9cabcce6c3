flow "a" {
  task "t" {
    plugin = "./greet.wasm"
    input  = [for price in [1, 2] : price * tax]
  }
}
