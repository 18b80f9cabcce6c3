plugin "p" {
  source = "./greet.wasm"
  config = { url = "x" }
}

flow "a" {
  task "t" {
    plugin = plugin.p
    config = ["x"]
  }
}
