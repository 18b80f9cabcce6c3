flow "a" {
  task "main" {
    plugin = "./greet.wasm"
    input  = task.cheer.output
  }
  on_failure {
    task "alert" {
      plugin = "./greet.wasm"
      input  = { why = error.message, late = task.sweep.output }
    }
  }
  on_success {
    task "cheer" {
      plugin = "./greet.wasm"
      after  = [task.main]
      input  = { why = error.message, other = task.alert.output }
    }
  }
  finally {
    timeout = "soon"
    task "sweep" {
      plugin = "./greet.wasm"
      input  = { why = error.message, alert = task.alert.output, cheer = task.cheer.state }
    }
    task "main" {
      plugin = "./greet.wasm"
    }
  }
  finally {
    task "twice" {
      plugin = "./greet.wasm"
    }
  }
}
