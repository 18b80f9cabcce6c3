plugin "typed" {
  source = "./typed.wasm"
}

flow "a" {
  task "fetch" {
    plugin   = plugin.typed
    function = "fetch"
    input    = { url = "https://example.com" }
  }

  task "use" {
    plugin = "./run.wasm"
    when   = task.fetch.output.totl > 3
    input  = {
      a = task.fetch.output.nam
      b = task.fetch.output.items[0].skuu
      c = [for i in task.fetch.output.items : i.prize]
      d = task.fetch.output.items[*].sko
      e = "costs ${task.fetch.output.name.first}"
      f = task.fetch.error.mesage
      g = task.fetch.output["nmae"]
      h = { for k, i in task.fetch.output.items : i.sku => upper(i.prices) }
    }
  }

  output "o" {
    value = coalesce(task.fetch.output.totals, 0)
  }
}
