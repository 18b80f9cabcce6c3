flow "a" {
  param "p" {
  }
  locals {
    l = 1
  }
  task "fetch" {
    plugin = "./greet.wasm"
  }
}

flow "b" {
  task "t" {
    plugin = "./greet.wasm"
    input  = [task.fetch.output, param.p, local.l]
  }
}
