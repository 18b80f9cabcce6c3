flow "a" {
  task {
    plugin = "./greet.wasm"
  }
  trigger "schedule" {
    every = "1h"
  }
}
