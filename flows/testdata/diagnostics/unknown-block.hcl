flwo "a" {
}

flow "a" {
  taks "t" {
    plugin = "./greet.wasm"
  }
  task "u" {
    plugin = "./greet.wasm"
  }
}
