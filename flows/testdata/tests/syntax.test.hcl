test "open" {
  flow = "orders
}
