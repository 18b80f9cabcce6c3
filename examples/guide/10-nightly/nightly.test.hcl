mock "discover" {
  output = each.key == "eu" ? ["customers", "orders"] : ["audit"]
}

mock "copy" {
  output = { table = "${input.region}.${input.table}", rows = 100 }
}

test "all tables of all regions are copied" {
  assert {
    condition = run.output.rows == 300 && run.output.failed == 0
  }
  assert {
    condition = task.chat.input.text == "copied 300 rows, 0 tables failed"
  }
}

test "a locked table keeps no other from being copied" {
  mock "copy" {
    fail   = input.table == "orders" ? { message = "locked", code = "lock" } : null
    output = { table = "${input.region}.${input.table}", rows = 100 }
  }

  assert {
    condition = run.state == "succeeded" && run.output.rows == 200 && run.output.failed == 1
  }
  assert {
    condition = task.copy.items[1].attempts == 3
  }
}

test "a database that is down raises the alarm" {
  mock "discover" {
    fail = { message = "no connection" }
  }

  assert {
    condition = run.state == "failed" && startswith(task.alarm.input.subject, "nightly failed in discover")
  }
}

test "each night asks for the changes since the one before" {
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
