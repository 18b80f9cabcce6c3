# What a task can be run for, and the arguments beside it.
variable "token" {
  default   = "x"
  sensitive = true
}

flow "a" {
  task "text" {
    plugin   = "./tool.wasm"
    for_each = "orders"
  }

  task "number" {
    plugin   = "./tool.wasm"
    for_each = 3
  }

  task "nothing" {
    plugin   = "./tool.wasm"
    for_each = null
  }

  task "secret" {
    plugin   = "./tool.wasm"
    for_each = [var.token]
  }

  task "unnamed" {
    plugin   = "./tool.wasm"
    for_each = { "" = 1, a = 2 }
  }

  task "many" {
    plugin   = "./tool.wasm"
    for_each = setproduct(range(400), range(400))
  }

  task "set" {
    plugin   = "./tool.wasm"
    for_each = toset(["a", ""])
  }

  task "none" {
    plugin       = "./tool.wasm"
    max_parallel = 4
  }

  task "bounds" {
    plugin       = "./tool.wasm"
    for_each     = ["a"]
    max_parallel = 0
    on_error     = "contineu"
  }

  task "fixed" {
    plugin       = "./tool.wasm"
    for_each     = ["a"]
    max_parallel = length(task.bounds.output)
    on_error     = param.x
  }

  task "secret_param" {
    plugin   = "./tool.wasm"
    for_each = [for t in param.tokens : t]
  }

  task "secret_among_others" {
    plugin   = "./tool.wasm"
    for_each = [param.x, var.token]
  }

  task "shown" {
    plugin   = "./tool.wasm"
    for_each = nonsensitive(param.tokens)
  }

  param "x" {}

  param "tokens" {
    type      = list(string)
    sensitive = true
  }
}
