plugin "typed" {
  source = "./typed.wasm"
}

flow "a" {
  locals {
    first  = task.fetch.output.items[0]
    broken = task.fetch.output.item
    order  = { skus = [local.first.sku], total = local.first.sku }
  }

  task "fetch" {
    plugin   = plugin.typed
    function = "fetch"
    input    = { url = "https://example.com" }
  }

  task "score" {
    plugin   = plugin.typed
    function = "score"
    input    = local.order
  }

  task "again" {
    plugin   = plugin.typed
    function = "score"
    input    = { skus = local.first, total = local.first.total }
  }
}
