flow "a" {
  wait "ok" {
    approval = "Go on?"
  }
  wait "paid" {
    subject = "orders.${trigger.payload.id}.paid"
  }
  wait "self" {
    approval = "${wait.self.state}?"
  }
  wait "first" {
    signal = true
    after  = [wait.second]
  }
  wait "second" {
    signal = true
    when   = wait.first.payload.go
  }
  task "t" {
    plugin = "./greet.wasm"
    after  = [wait.okk, task.ok, wait.t, wait.report]
    input = {
      a = wait.pay.payload
      b = wait.paid.output.total
      c = wait.paid.total
      d = wait.paid.stat
      e = wait.paid
      f = task.paid.output
      g = wait.t.payload
      h = paid
      i = wait.report.payload
      j = wait.paid.duration.seconds
      k = task["wait.paid"].output
    }
  }
  finally {
    wait "report" {
      duration = "1s"
    }
    task "end" {
      plugin = "./greet.wasm"
      after  = [wait.ok]
    }
  }
}

flow "b" {
  task "t" {
    plugin = "./greet.wasm"
    input  = wait.ok.payload
  }
}
