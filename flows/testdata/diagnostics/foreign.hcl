flow "a" {
  schedule = "0 1 * * *"
  env = {
    A = "b"
  }
  step "x" {}
  trigger "schedule" "once" {
    at    = "2030-01-01T00:00:00Z"
    count = 1
  }
  task "t" {
    plugin     = "./greet.wasm"
    depends_on = [task.u]
    needs      = ["u"]
    command    = ["ls"]
    script     = "ls"
    run        = "ls"
    image      = "alpine"
    if         = true
    count      = 3
    env        = {}
    with       = {}
  }
  task "u" {
    plugin    = "./greet.wasm"
    container = "alpine"
    env {
      A = "b"
    }
  }
  group "g" {
    needs = ["t"]
    task "v" {
      plugin = "./greet.wasm"
    }
  }
  wait "w" {
    signal     = true
    depends_on = ["t"]
  }
}

task "alone" {
  plugin = "./greet.wasm"
}

job "x" {}
