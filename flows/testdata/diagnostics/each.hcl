# Where an item is known.
flow "a" {
  description = "for ${each.key}"

  locals {
    item = each.value
  }

  task "items" {
    plugin   = "./tool.wasm"
    for_each = [each.key]
    when     = each.value > 1
    timeout  = each.value
    input    = { misspelt = each.vlaue, all = each, deep = each.value.name }
    config   = { key = each.kye }
  }

  task "single" {
    plugin = "./tool.wasm"
    input  = each.value
  }

  group "items_too" {
    when = each.key == "a"

    task "member" {
      plugin = "./tool.wasm"
      input  = each.key

      retry {
        attempts = 2
        when     = each.index < 3
      }
    }
  }

  task "other" {
    plugin = "./tool.wasm"
    input  = { errors = task.single.errors, item = task.items["a"].output }
    after  = [task.items[0], each.key]
  }

  trigger "message" "m" {
    subject = "x"
    filter  = each.value
  }

  output "o" {
    value = each.value
  }
}

plugin "p" {
  source = each.key
}
