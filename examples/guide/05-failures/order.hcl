plugin "pricing" {
  source = "../../orders/pricing.wasm"
}

plugin "notify" {
  source = "../../orders/notify.wasm"
}

flow "order" {
  timeout = "10m"

  task "price" {
    plugin   = plugin.pricing
    function = "main"
    input    = trigger.payload
    timeout  = "5s"

    retry {
      attempts = 4
      delay    = "1s"
      max      = "30s"
    }
  }

  output "total" {
    value = task.price.output.total
  }

  on_failure {
    task "alert" {
      plugin = plugin.notify
      input  = { text = "${error.task} failed: ${error.message}" }
    }
  }

  finally {
    task "note" {
      plugin = plugin.notify
      input  = { text = "price: ${task.price.state} after ${task.price.attempts} attempts" }
    }
  }
}
