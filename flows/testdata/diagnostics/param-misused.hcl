flow "a" {
  param "p" {
    type      = list(strin)
    required  = true
    sensitive = "maybe"
  }
  task "t" {
    plugin = "./greet.wasm"
  }
}
