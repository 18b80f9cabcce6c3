# Tasks and groups that wait for each other.
flow "outside" {
  group "pair" {
    task "inside" {
      plugin = "./tool.wasm"
      input  = task.outside.output
    }
  }

  task "outside" {
    plugin = "./tool.wasm"
    input  = group.pair.output
  }
}

flow "two_groups" {
  group "one" {
    after = [group.two]

    task "one_a" {
      plugin = "./tool.wasm"
    }
  }

  group "two" {
    task "two_a" {
      plugin = "./tool.wasm"
      after  = [task.one_a]
    }
  }
}

flow "serial" {
  group "steps" {
    mode = "serial"

    task "first" {
      plugin = "./tool.wasm"
      input  = task.second.output
    }

    task "second" {
      plugin = "./tool.wasm"
    }
  }
}

flow "first_success" {
  group "tries" {
    mode = "first_success"

    group "first" {
      after = [task.second]

      task "first_a" {
        plugin = "./tool.wasm"
      }
    }

    task "second" {
      plugin = "./tool.wasm"
    }
  }
}

flow "race" {
  group "racers" {
    mode = "race"

    task "a" {
      plugin = "./tool.wasm"
    }

    task "b" {
      plugin = "./tool.wasm"
      input  = task.outside.output
    }
  }

  task "outside" {
    plugin = "./tool.wasm"
    input  = task.a.output
  }
}

flow "nested" {
  group "outer" {
    mode = "race"

    group "inner" {
      task "deep" {
        plugin = "./tool.wasm"
        after  = [task.outside]
      }
    }
  }

  task "outside" {
    plugin = "./tool.wasm"
    when   = group.inner.state == "succeeded"
  }
}

flow "ordering" {
  group "always" {
    mode = "race"

    task "clean" {
      plugin = "./tool.wasm"
      run_on = "always"
      after  = [task.outside]
    }
  }

  task "outside" {
    plugin = "./tool.wasm"
    after  = [group.always]
  }
}

flow "members" {
  group "pair" {
    task "a" {
      plugin = "./tool.wasm"
      after  = [task.b]
    }

    task "b" {
      plugin = "./tool.wasm"
      after  = [task.a]
    }
  }
}
