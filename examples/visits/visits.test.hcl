# The bucket and the subject are mocked; jq is real.

mock "count" {
  output = { value = input.key == "a-b" ? 200 : 7 }
}

mock "announce" {
  output = {}
}

test "each hundredth visit is announced" {
  payload = { page = "/a/b?from=mail" }
  assert {
    condition = task.announce.input == { subject = "visits.hundreds", data = { page = "a-b", visits = 200 } }
  }
}

test "other visits are not" {
  payload = { page = "/" }
  assert {
    condition = task.announce.state == "skipped" && task.count.input.key == "home"
  }
}
