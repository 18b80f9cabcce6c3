plugin "typed" {
  source = "./typed.wasm"
}

flow "a" {
  task "fetch" {
    plugin   = plugin.typed
    function = "fetch"
    input    = { url = "https://example.com" }
  }
  task "t" {
    plugin = "./greet.wasm"
    input = {
      upper   = upper(task.fetch.output.items)
      length  = length(task.fetch.output.total)
      keys    = keys(task.fetch.output.items)
      values  = values(task.fetch.output.name)
      concat  = concat(task.fetch.output.items, task.fetch.output.name)
      join    = join(",", task.fetch.output.items)
      sum     = sum(task.fetch.output.total)
      element = element(task.fetch.output, 0)
      second  = substr(task.fetch.output.name, task.fetch.output.items, 1)
      tried   = try(upper(task.fetch.output.items), "none")
      for     = [for c in task.fetch.output.name : c]
      last    = task.fetch.output.items[-1]
      letter  = task.fetch.output.name[0]
      field   = task.fetch.output[0]
      named   = task.fetch.output.items["first"]
      letters = task.fetch.output.name[length(run.id)]
    }
  }
}
