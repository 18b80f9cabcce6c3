plugin "greet" {
  source = "../../hello/greet.wasm"
}

flow "greet_all" {
  param "names" {
    type    = list(string)
    default = ["Ada", "", "Grace"]
  }

  task "greet" {
    for_each     = param.names
    max_parallel = 2
    on_error     = "continue"
    plugin       = plugin.greet
    input        = { name = each.value }
  }

  output "texts" {
    value = [for g in task.greet.output : g.text if g != null]
  }

  output "failed" {
    value = task.greet.errors[*].key
  }
}
