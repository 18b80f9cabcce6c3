flow "a" {
  task "t" {
    plugin = "./greet.wasm"
    input  = { home = "${HOME}/data", escaped = "$${HOME}" }
  }
}
