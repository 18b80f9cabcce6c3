# Groups as blocks: their words and members.
flow "a" {
  group "empty" {
  }

  group "modes" {
    mode         = "paralel"
    max_parallel = 0

    task "one" {
      plugin = "./tool.wasm"
    }
  }

  group "ordered" {
    mode         = "serial"
    max_parallel = 2

    task "two" {
      plugin = "./tool.wasm"
    }
  }

  group "first" {
    mode         = "first_success"
    max_parallel = 1

    task "three" {
      plugin = "./tool.wasm"
    }
  }

  group "decided" {
    mode         = task.one.output
    max_parallel = length(task.one.output)
    when         = 3
    timeout      = "5s"
    whne         = true

    task "four" {
      plugin = "./tool.wasm"
    }

    output "x" {
      value = 1
    }
  }

  group = {
    mode = "serial"
  }

  group {
    task "five" {
      plugin = "./tool.wasm"
    }
  }

  group "a group" {
    task "six" {
      plugin = "./tool.wasm"
    }
  }

  group "inner" {
    group "nothing" {
      mode = "race"
    }
  }
}

flow "b" {
  group "only" {
    mode = null
  }
}
