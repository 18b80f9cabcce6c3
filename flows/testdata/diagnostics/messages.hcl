flow "a" {
  param "customer" {
  }
  trigger "message" "a" {
    subject = "orders..created"
  }
  trigger "message" "b" {
    subject = "orders.>.x"
    stream  = "ORDERS"
  }
  trigger "message" "c" {
    subject = "orders new"
    stream  = "A.B"
    durable = "d"
    params  = { custmer = trigger.payload.c }
  }
  task "t" {
    plugin = "./greet.wasm"
  }
}
