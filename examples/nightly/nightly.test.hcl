# Databases and the warehouse are mocked: a mock of a task with for_each is asked for
# each item.

mock "discover" {
  output = each.key == "eu" ? ["customers", "orders"] : ["audit"]
}

mock "copy" {
  output = { table = "${input.region}.${input.table}", rows = 100 }
}

mock "chat" {
  output = { by = "chat" }
}

test "all tables of all regions are copied" {
  assert {
    condition = task.discover.items["eu"].input.host == var.regions["eu"].host
  }
  assert {
    condition = task.copy.output[*].table == ["eu.customers", "eu.orders", "us.audit"]
  }
  assert {
    condition = task.chat.input.text == "copied 300 rows, 0 tables failed" && group.notify.output.by == "chat"
  }
  assert {
    condition = task.mail.state == "skipped"
  }
}

test "a table that cannot be copied keeps no other from it" {
  mock "copy" {
    fail   = input.table == "orders" ? { message = "locked", code = "lock", retryable = false } : null
    output = { table = "${input.region}.${input.table}", rows = 100 }
  }
  mock "mail" {
    output = { by = "mail" }
  }

  assert {
    condition = run.state == "succeeded" && task.copy.items[*].state == ["succeeded", "failed", "succeeded"]
  }
  assert {
    condition = task.copy.errors[*].key == [1] && task.copy.errors[0].code == "lock"
  }

  # A table that is missing has no rows, so there is no text for the chat.
  assert {
    condition = task.chat.state == "failed" && group.notify.output.by == "mail"
  }
}

test "a mail is sent when the chat is down" {
  mock "chat" {
    outcome = "timed_out"
    takes   = "5m"
  }
  mock "mail" {
    output = { by = "mail" }
  }

  assert {
    condition = task.chat.error.outcome == "timed_out" && group.notify.state == "succeeded"
  }
  assert {
    condition = startswith(task.mail.input.subject, "nightly ") && run.output.notify.by == "mail"
  }
}

test "eight tables are under way at once" {
  mock "discover" {
    output = each.key == "eu" ? [for n in range(20) : "t${n}"] : []
  }
  mock "copy" {
    output = { rows = each.index }
    takes  = "1m"
  }

  assert {
    condition = length(task.copy.items) == 20 && task.copy.duration == 180
  }
}

test "a night asks for what has changed since the one before" {
  trigger = "night"
  at      = "2026-03-28T00:00:00Z"
  until   = "48h"

  # 02:15 in Berlin. In the second night the clocks skip from two to three.
  assert {
    condition = runs[*].scheduled_at == ["2026-03-28T01:15:00Z", "2026-03-29T01:00:00Z"]
  }
  assert {
    condition = runs[1].task.discover.items.us.input.since == runs[0].scheduled_at
  }
}
