test "a small order ships at once" {
  trigger = "created"
  payload = jsondecode(file("small.json"))

  assert {
    condition = wait.manager.state == "skipped" && task.ship.state == "succeeded"
  }
}

test "a large order waits for the manager" {
  trigger = "created"
  payload = jsondecode(file("large.json"))

  approve "manager" {
    after = "3h"
    by    = "bob"
  }

  assert {
    condition = wait.manager.duration == 3 * 3600 && task.ship.state == "succeeded"
  }
}

test "nothing ships when the manager refuses" {
  trigger = "created"
  payload = jsondecode(file("large.json"))

  approve "manager" {
    approved = false
    reason   = "too large"
  }

  assert {
    condition = run.error.code == "refused" && task.ship.state == "skipped"
  }
}
