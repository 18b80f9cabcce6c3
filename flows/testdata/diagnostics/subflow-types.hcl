flow "parent" {
  task "missing" {
    flow = flow.child
  }

  task "null" {
    flow  = flow.child
    input = null
  }

  task "misspelt" {
    flow  = flow.child
    input = { coutn = 1, name = "x" }
  }

  task "written" {
    flow  = flow.child
    input = { count = "many", name = "xx", mode = "fast", tags = 1 }
  }

  task "other" {
    flow  = flow.child
    input = 5
  }

  task "fetch" {
    plugin   = "./typed.wasm"
    function = "fetch"
    input    = { url = "x" }
  }

  task "given" {
    flow  = flow.child
    input = { count = task.fetch.output.items, name = task.fetch.output.name, tags = task.fetch.output.items }
  }

  task "uses" {
    plugin = "./greet.wasm"
    input  = { a = task.given.output.totl, b = task.given.output.total.x, c = task.given.output.nested.total, d = task.open.output.anything }
  }

  task "open" {
    flow = "sinks"
  }
}

flow "child" {
  param "count" {
    type = number
  }
  param "name" {
    validation {
      condition     = length(param.name) < 2
      error_message = "Too long."
    }
  }
  param "mode" {
    type    = string
    default = "full"
    validation {
      condition     = contains(["full", "part"], param.mode)
      error_message = "The mode is full or part."
    }
  }
  param "tags" {
    type    = list(string)
    default = []
  }
  task "score" {
    plugin   = "./typed.wasm"
    function = "score"
    input    = { skus = param.tags, total = param.count }
  }
  task "inner" {
    flow = flow.nested
  }
  output "total" {
    value = task.score.output.total
  }
  output "nested" {
    value = task.inner.output
  }
}

flow "nested" {
  task "fetch" {
    plugin   = "./typed.wasm"
    function = "fetch"
    input    = { url = "x" }
  }
  output "totals" {
    value = task.fetch.output.total
  }
}

flow "sinks" {
  task "t" {
    plugin = "./greet.wasm"
  }
}
