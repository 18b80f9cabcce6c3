test "values" {
  flow   = "orders"
  at     = "2026-01-01"
  until  = "a day"
  params = { count = "many" }

  mock "fetch" {
    outcome = "succeeded"
    times   = 0
    takes   = "2 hours"
    fail    = { mesage = "no" }
  }
  mock "greet" {
    hangs  = true
    takes  = "1h"
    output = 1
  }
  mock "sweep" {
    fail   = { retryable = "perhaps" }
    output = 1
  }
  assert {
    condition = 1 == 1
  }
  assert {
    error_message = "no condition"
  }
}

test "more values" {
  flow   = "orders"
  params = 5

  mock "fetch" {
    times = 3
    fail  = "no"
  }
  mock "greet" {
    output = attempt + inputs
  }
  mock "sweep" {
    output = uper(input)
    fail   = 7
    times  = 1
  }
  assert {
    condition = input == 5 && error.message == "x"
  }
}
