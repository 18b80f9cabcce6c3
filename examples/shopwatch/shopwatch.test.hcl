# What the tasks would reach is mocked; jq is real.

mock "fetch" {
  output = {
    pages     = 1
    truncated = false
    items = [
      { id = "a", placed = "2026-03-01T10:00:00Z", state = "paid", lines = [{ sku = "x", quantity = 2, cents = 500 }] },
      { id = "b", placed = "2026-03-01T11:00:00Z", state = "canceled", lines = [] },
    ]
  }
}

mock "table" {
  output = { rows = 0 }
}

mock "store" {
  output = { rows = length(input.rows) }
}

mock "count" {
  output = { value = 1 }
}

test "canceled orders are left out" {
  assert {
    condition = run.output.stored == 1
  }
  assert {
    condition = task.store.input.rows[0].cents == 1000
  }
}
