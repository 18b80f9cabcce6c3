flow "a" {
  task "t" { plugin = "./greet.wasm", retries = 3 }
}
