# What the plugins compute is real here: they are granted nothing, so a test may call
# them. Time is virtual.

test "a small order is approved" {
  trigger = "created"
  payload = jsondecode(file("small.json"))

  assert {
    condition     = run.output.ticket.status == "approved" && run.output.ticket.total == 154.9
    error_message = "The ticket is ${jsonencode(run.output.ticket)}."
  }
  assert {
    condition = task.manual_review.state == "skipped" && run.duration == 0
  }
}

test "a large order waits for somebody" {
  trigger = "created"
  payload = jsondecode(file("large.json"))

  assert {
    condition = run.output.ticket.status == "pending" && run.output.ticket.queue == var.review_queue
  }
}

test "an order of nothing starts no run" {
  trigger = "created"
  payload = { customer = "ada", total = 0 }

  assert {
    condition = length(runs) == 0
  }
}

test "an invalid order alerts people at once" {
  payload = jsondecode(file("invalid.json"))

  assert {
    condition = run.error.code == "invalid_order" && task.price.attempts == 1
  }
  assert {
    condition = strcontains(task.alert.input.text, "price failed")
  }
}

test "pricing that is down for a moment" {
  payload = { customer = "ada" }

  mock "price" {
    fail   = { message = "no connection", code = "unreachable" }
    times  = 2
    output = { customer = input.customer, order = "o-1", total = 12000 }
    takes  = "2s"
  }
  mock "manual_review" {
    takes = "48h"
  }

  # Three times two seconds, and one and two seconds between them. A call that takes two
  # days is interrupted after five minutes.
  assert {
    condition = task.price.attempts == 3 && task.price.duration == 9
  }
  assert {
    condition = run.error.outcome == "timed_out" && task.manual_review.duration == 300
  }
}
