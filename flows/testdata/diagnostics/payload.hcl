flow "a" {
  param "total" {
    type = list(number)
  }
  trigger "message" "made" {
    subject = "a.made"
    payload = object({ id = string, lines = list(object({ sku = string })), note = optional(string, "none") })
    filter  = trigger.payload.idd != ""
    params  = { total = trigger.payload.note }
  }
  trigger "message" "again" {
    subject = "a.again"
    payload = object({ id = string, lines = number, total = number })
    filter  = trigger.payload.lines
  }
  trigger "message" "wrong" {
    subject = "a.wrong"
    payload = "object"
  }
  task "t" {
    plugin = "./greet.wasm"
    input  = trigger.payload.any
  }
}

flow "b" {
  trigger "message" "made" {
    subject = "b.made"
    payload = object({ id = string, lines = list(object({ sku = string })) })
  }
  trigger "schedule" "daily" {
    every   = "24h"
    payload = string
  }
  concurrency {
    key = trigger.payload.lines
  }
  locals {
    first = trigger.payload.lines[0].sk
  }
  task "t" {
    plugin = "./greet.wasm"
    when   = trigger.payload.lines
    input  = { sku = local.first, all = trigger.payload.lines[*].skus, or = try(trigger.payload.x, 1) }
  }
  output "o" {
    value = [for l in trigger.payload.lines : l.id]
  }
}
