test "of a schedule" {
  flow    = "orders"
  trigger = "nightly"
  params  = { count = 1 }
  payload = {}

  assert {
    condition = run.state == "succeeded" && task.greet.state == "succeeded"
  }
}
