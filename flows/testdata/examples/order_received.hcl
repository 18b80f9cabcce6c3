flow "order_received" {
  description = "Price an incoming order and route it."

  trigger "message" "created" {
    subject = "orders.created"
    filter  = trigger.payload.total > 0
  }

  concurrency {
    key   = trigger.payload.customer
    limit = 1
  }

  task "price" {
    plugin  = plugin.pricing
    input   = trigger.payload
    timeout = "5s"
    retries = 3
  }

  task "manual_review" {
    when   = task.price.output.total >= 10000
    plugin = plugin.review
    input  = task.price.output
  }

  task "auto_approve" {
    when     = task.price.output.total < 10000
    plugin   = plugin.pricing
    function = "approve"
    input    = task.price.output
  }

  output "ticket" {
    value = coalesce(task.manual_review.output, task.auto_approve.output)
  }

  on_failure {
    task "alert" {
      plugin = plugin.notify
      input  = { text = "${run.flow} ${run.id}: ${error.task} failed (${error.message})" }
    }
  }
}
