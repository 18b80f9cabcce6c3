plugin "pricing" {
  source = "../../orders/pricing.wasm"
}

plugin "review" {
  source = "../../orders/review.wasm"
  config = { queue = "sales" }
}

flow "order" {
  task "price" {
    plugin   = plugin.pricing
    function = "main"
    input    = trigger.payload
  }

  task "review" {
    when   = task.price.output.total >= 10000
    plugin = plugin.review
    input  = task.price.output
  }

  task "approve" {
    when     = task.price.output.total < 10000
    plugin   = plugin.pricing
    function = "approve"
    input    = task.price.output
  }

  output "status" {
    value = coalesce(task.review.output, task.approve.output).status
  }
}
