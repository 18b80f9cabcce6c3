variable "token" {
  sensitive = true
  default   = "hunter2"
}

flow "a" {
  task "t" {
    plugin = "./greet.wasm"
    input  = parseint(var.token, 10)
  }
  task "u" {
    plugin  = "./greet.wasm"
    timeout = [var.token]
  }
}
