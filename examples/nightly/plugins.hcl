variable "regions" {
  type = map(object({ host = string }))
  default = {
    eu = { host = "pg.eu.example" }
    us = { host = "pg.us.example" }
  }
  description = "The databases to copy from."
}

variable "room" {
  type        = string
  default     = "data"
  description = "Chat room for messages; without one, a mail is sent."
}

plugin "pg" {
  source = "./pg.wasm"
}

plugin "warehouse" {
  source = "./warehouse.wasm"
  config = { room = var.room }
}
