connection "marks" {
  type   = "sqlite"
  path   = "marks.db"
  access = "rw"
}

flow "mark" {
  task "mark" {
    plugin   = "./marks.wasm"
    function = "mark"
    input    = { n = trigger.payload.n }

    retry {
      attempts = 20
      backoff  = "constant"
      delay    = "20ms"
    }

    grant {
      connections = [connection.marks]
      kv          = { marks = "rw" }
      publish     = ["marks.made"]
    }
  }

  output "n" {
    value = task.mark.output.n
  }
}
