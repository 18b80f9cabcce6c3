flow "chain" {
  task "one" {
    plugin   = "./chores.wasm"
    function = "add"
    input    = { n = trigger.payload.n, plus = 1 }
  }

  task "two" {
    plugin   = "./chores.wasm"
    function = "add"
    input    = { n = task.one.output.n, plus = 1 }
  }

  task "three" {
    plugin   = "./chores.wasm"
    function = "add"
    input    = { n = task.two.output.n, plus = 1 }
  }

  output "n" {
    value = task.three.output.n
  }
}

flow "fan" {
  task "a" {
    plugin   = "./chores.wasm"
    function = "add"
    input    = { n = trigger.payload.n, plus = 1 }
  }

  task "b" {
    plugin   = "./chores.wasm"
    function = "add"
    input    = { n = trigger.payload.n, plus = 2 }
  }

  task "c" {
    plugin   = "./chores.wasm"
    function = "add"
    input    = { n = trigger.payload.n, plus = 3 }
  }

  task "all" {
    plugin   = "./chores.wasm"
    function = "sum"
    input    = [task.a.output.n, task.b.output.n, task.c.output.n]
  }

  output "n" {
    value = task.all.output.n
  }
}

flow "branches" {
  task "items" {
    plugin       = "./chores.wasm"
    function     = "add"
    for_each     = [1, 2, 3]
    max_parallel = 2
    input        = { n = trigger.payload.n, plus = each.value }
  }

  group "first" {
    mode = "race"

    task "quick" {
      plugin   = "./chores.wasm"
      function = "add"
      input    = { n = trigger.payload.n, plus = 4 }
    }

    task "also" {
      plugin   = "./chores.wasm"
      function = "add"
      input    = { n = trigger.payload.n, plus = 4 }
    }
  }

  group "steps" {
    mode  = "serial"
    after = [group.first]

    wait "pause" {
      duration = "20ms"
    }

    group "tries" {
      mode = "first_success"

      task "stumbles" {
        plugin   = "./chores.wasm"
        function = "stumble"
        input    = { n = group.first.output.n, plus = 5 }
      }

      task "sure" {
        plugin   = "./chores.wasm"
        function = "add"
        input    = { n = group.first.output.n, plus = 5 }
      }
    }
  }

  task "inner" {
    flow  = flow.inner
    input = { n = group.tries.output.n }
  }

  task "all" {
    plugin   = "./chores.wasm"
    function = "sum"
    input    = concat(task.items.output[*].n, [task.inner.output.n])
  }

  output "n" {
    value = task.all.output.n
  }
}

flow "inner" {
  param "n" { type = number }

  task "one" {
    plugin   = "./chores.wasm"
    function = "add"
    input    = { n = param.n, plus = 1 }
  }

  output "n" {
    value = task.one.output.n
  }
}

flow "flaky" {
  task "try" {
    plugin   = "./chores.wasm"
    function = "stumble"
    input    = { n = trigger.payload.n, plus = 10 }

    retry {
      attempts = 20
      backoff  = "constant"
      delay    = "20ms"
    }
  }

  output "n" {
    value = task.try.output.n
  }
}

flow "effect" {
  task "note" {
    plugin   = "./chores.wasm"
    function = "note"
    input    = { n = trigger.payload.n, plus = 20 }

    grant {
      files = { "./effects" = "rw" }
    }
  }

  task "after" {
    plugin   = "./chores.wasm"
    function = "add"
    input    = { n = task.note.output.n, plus = 1 }
  }

  output "n" {
    value = task.after.output.n
  }
}

flow "bulk" {
  task "echo" {
    plugin   = "./chores.wasm"
    function = "echo"
    input    = { n = trigger.payload.n, pad = trigger.payload.pad }
  }

  output "n" {
    value = task.echo.output.n
  }
}

flow "nap" {
  task "nap" {
    plugin   = "./chores.wasm"
    function = "nap"
    input    = { n = trigger.payload.n, plus = 250 }
  }

  output "n" {
    value = task.nap.output.n
  }
}

flow "sequel" {
  param "n" { type = number }

  trigger "flow" "after" {
    after  = flow.flaky
    params = { n = trigger.payload.output.n }
  }

  task "one" {
    plugin   = "./chores.wasm"
    function = "add"
    input    = { n = param.n, plus = 1 }
  }

  output "n" {
    value = task.one.output.n
  }
}

flow "clock" {
  trigger "schedule" "tick" {
    every           = "1s"
    overlap         = "allow"
    catch_up        = "all"
    catch_up_window = "24h"
    catch_up_max    = 10000
  }

  task "one" {
    plugin   = "./chores.wasm"
    function = "add"
    input    = { n = 1, plus = 1 }
  }

  output "n" {
    value = task.one.output.n
  }
}
