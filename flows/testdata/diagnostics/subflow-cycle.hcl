flow "a" {
  task "first" {
    plugin = "./greet.wasm"
  }
  task "next" {
    flow  = flow.b
    after = [task.first]
  }
}

flow "b" {
  task "on" {
    flow = flow.c
  }
}

flow "c" {
  task "sometimes" {
    plugin = "./greet.wasm"
    when   = param.go
  }
  task "skipped_with_it" {
    flow  = flow.b
    after = [task.sometimes]
  }
  finally {
    task "back" {
      flow = flow.a
    }
  }
  param "go" {
    type    = bool
    default = true
  }
}
