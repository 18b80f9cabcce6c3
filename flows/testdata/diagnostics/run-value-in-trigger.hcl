flow "a" {
  param "p" {
  }
  trigger "message" "m" {
    subject = "a.b"
    filter  = task.t.output.ok
    params  = { p = run.id }
  }
  trigger "message" "n" {
    subject = "a.b"
    filter  = param.p == 1
  }
  concurrency {
    key = run.id
  }
  task "t" {
    plugin = "./greet.wasm"
  }
}
