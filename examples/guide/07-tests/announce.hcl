plugin "warehouse" {
  source = "../../nightly/warehouse.wasm"
  config = { room = "data" }
}

flow "announce" {
  group "notify" {
    mode = "first_success"

    task "chat" {
      plugin   = plugin.warehouse
      function = "chat"
      input    = { text = "the report is ready" }
      timeout  = "1m"
      retries  = 1
    }

    task "mail" {
      plugin   = plugin.warehouse
      function = "mail"
      input    = { subject = "the report is ready" }
    }
  }

  output "by" {
    value = group.notify.output.by
  }
}
