mock "fecht" {}

mock "greet" {
  takes = "long"
}

mock "greet" {}

mock_plugin "tpyed" {}

mock_plugin "typed" {}

mock_plugin "typed" {}

test "of one flow" {
  flow = "orders"
}

test "of another" {
  flow = "returns"
}
