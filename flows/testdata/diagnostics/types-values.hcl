plugin "typed" {
  source = "./typed.wasm"
}

variable "mode" {
  type    = string
  default = "slow"
}

flow "a" {
  task "a" {
    plugin   = plugin.typed
    function = "fetch"
    input    = { url = 5, count = 1.5, mode = "ful" }
  }

  task "b" {
    plugin   = plugin.typed
    function = "fetch"
    input    = { url = "u", count = "5", mode = var.mode }
  }

  task "c" {
    plugin   = plugin.typed
    function = "fetch"
    input    = "https://example.com"
  }

  task "d" {
    plugin   = plugin.typed
    function = "fetch"
    input = {
      url = join("/", [run.id, task.a.output.name])
      count = length(task.a.output.items) > 3
    }
  }
}
