test "words" {
  flwo = "orders"
  mock = {}
  assert "x" {
    condition = true
  }
  payload {
    a = 1
  }
  moc "fetch" {}
}

test "twice" {
  flow = "orders"
  mock "fetch" {}
  mock "fetch" {}
  mock_plugin "typed" {}
  mock_plugin "typed" {}
}

test "twice" {
  flow = "orders"
}

test "" {
  flow = "orders"
}

flow "orders" {
}
