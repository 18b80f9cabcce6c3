flow "a b" {
  task "t" {
    plugin = "./greet.wasm"
  }
}

flow "b" {
  task "1st" {
    plugin = "./greet.wasm"
  }
  task "größe" {
    plugin = "./greet.wasm"
  }
}
