flow "parent" {
  task "both" {
    plugin = "./greet.wasm"
    flow   = flow.child
  }

  task "neither" {
  }

  task "null" {
    flow = null
  }

  task "misspelt" {
    flow = flow.chld
  }

  task "far" {
    flow = "billing/invoices"
  }

  task "bare" {
    flow = child
  }

  task "name" {
    flow = flow.name
  }

  task "function" {
    flow     = flow.child
    function = "greet"
    config   = { a = 1 }
    priority = 5
    limits {
      memory = "1MiB"
    }
    grant {
      files = {}
    }
  }

  task "list" {
    flow = [flow.child]
  }

  task "late" {
    flow = "child-${run.id}"
  }
}

flow "child" {
  task "t" {
    plugin = "./greet.wasm"
  }
}
