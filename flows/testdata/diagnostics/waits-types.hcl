flow "a" {
  task "fetch" {
    plugin   = "./typed.wasm"
    function = "fetch"
    input    = { url = "u" }
  }
  wait "a_while" {
    duration = task.fetch.output.total
  }
  wait "message" {
    subject = task.fetch.output.items
    when    = task.fetch.output.items
  }
  wait "fine" {
    approval = "Take ${task.fetch.output.nam}?"
  }
  task "score" {
    plugin   = "./typed.wasm"
    function = "score"
    input    = { skus = [], total = wait.fine.state }
    config   = wait.fine.payload
  }
}
