# Nothing is reached in a test: what a task would fetch, write or publish is mocked. The task
# "transform" is granted nothing, so it may be real.

mock "extract" {
  output = [
    { id = "a", placed = "2026-03-01T10:00:00Z", state = "paid", lines = [{ sku = "x", quantity = 2, cents = 500 }] },
    { id = "b", placed = "2026-03-01T11:00:00Z", state = "canceled", lines = [] },
  ]
}

mock "load" {
  output = { orders = length(input), cents = sum(input[*].cents) }
}

mock "announce" {
  output = {}
}

test "canceled orders are left out" {
  assert {
    condition = run.output.loaded.orders == 1 && run.output.loaded.cents == 1000
  }
  assert {
    condition = task.announce.input.orders == 1
  }
}

test "a database that is locked is tried again" {
  mock "load" {
    fail   = attempt < 3 ? { message = "locked", code = "refused", retryable = true } : null
    output = { orders = 1, cents = 1000 }
  }

  assert {
    condition = task.load.attempts == 3 && run.state == "succeeded"
  }
}
