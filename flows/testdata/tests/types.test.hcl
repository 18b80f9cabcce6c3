test "what the function gives" {
  flow = "orders"

  mock "fetch" {
    output = { name = 5, totl = 3, items = [{ sku = 1 }] }
  }
}
