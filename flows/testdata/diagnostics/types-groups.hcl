# What fan-outs and groups give, as far as it is known.
plugin "typed" {
  source = "./typed.wasm"
}

flow "fan_outs" {
  param "regions" {
    type = set(string)
  }

  task "fetch" {
    plugin   = plugin.typed
    function = "fetch"
    input    = { url = "x" }
  }

  task "by_place" {
    for_each = task.fetch.output.items
    on_error = "continue"
    plugin   = plugin.typed
    function = "score"
    input    = { skus = [each.value.skuu], total = each.key }
  }

  task "by_name" {
    for_each = { eu = "Europe", us = "America" }
    plugin   = plugin.typed
    function = "fetch"
    input    = { url = each.value, count = each.key, mode = each.key }
  }

  task "by_region" {
    for_each = param.regions
    plugin   = plugin.typed
    function = "fetch"
    input    = { url = each.key, count = each.key }
  }

  task "of_a_text" {
    for_each = task.fetch.output.name
    plugin   = plugin.typed
    function = "fetch"
    input    = { url = each.index }
  }

  output "wrong" {
    value = {
      a_list    = task.by_place.output.total
      misspelt  = task.by_place.output[*].totl
      an_object = task.by_name.output.totl
      a_key     = task.by_name.output.eu.nmae
      a_region  = task.by_region.output.eu.nmae
      errors    = task.by_place.errors[*].mesage
      no_items  = task.fetch.errors
      message   = task.by_place.errors.message
    }
  }
}

flow "groups" {
  group "all" {
    task "one" {
      plugin   = plugin.typed
      function = "fetch"
      input    = { url = "x" }
    }

    group "inner" {
      mode = "serial"

      task "two" {
        plugin   = plugin.typed
        function = "score"
        input    = { skus = [], total = 1 }
      }
    }
  }

  group "first" {
    mode = "race"
    when = group.all.output

    task "three" {
      plugin   = plugin.typed
      function = "fetch"
      input    = { url = "x" }
    }

    task "four" {
      plugin   = plugin.typed
      function = "score"
      input    = { skus = group.all.output.one.items[*].price, total = group.all.output.inner }
    }
  }

  output "wrong" {
    value = {
      member = group.all.output.tow
      field  = group.all.output.one.nmae
      deep   = group.all.output.inner.two.totl
      winner = group.first.output.four
      error  = group.all.error.mesage
    }
  }
}

flow "circle" {
  task "circle" {
    for_each = [task.round.output, task.round.output]
    plugin   = plugin.typed
    function = "fetch"
    input    = { url = each.value }
  }

  task "round" {
    for_each = [task.circle.output, task.circle.output]
    plugin   = plugin.typed
    function = "fetch"
    input    = { url = each.value, count = group.all.output.member }
  }

  group "all" {
    task "member" {
      for_each = [group.all.output]
      plugin   = plugin.typed
      function = "fetch"
      input    = { url = each.value }
    }
  }
}
