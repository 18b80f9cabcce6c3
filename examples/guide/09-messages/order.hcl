plugin "pricing" {
  source = "../../orders/pricing.wasm"
}

plugin "notify" {
  source = "../../orders/notify.wasm"
}

flow "order" {
  trigger "message" "created" {
    subject = "guide.orders.created"
    payload = object({
      id       = string
      customer = string
      total    = number
      items    = list(object({ sku = string, quantity = number, price = number }))
    })
    filter = trigger.payload.total > 0
  }

  concurrency {
    key   = trigger.payload.customer
    limit = 1
  }

  task "price" {
    plugin   = plugin.pricing
    function = "main"
    input    = trigger.payload
  }

  wait "manager" {
    when     = task.price.output.total >= 10000
    approval = "Sell to ${trigger.payload.customer} for ${task.price.output.total}?"
    timeout  = "48h"
  }

  task "ship" {
    after  = [wait.manager]
    plugin = plugin.notify
    input  = { text = "ship order ${task.price.output.id} for ${task.price.output.total}" }
  }
}
