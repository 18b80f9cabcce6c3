variable "review_queue" {
  type        = string
  default     = "sales"
  description = "Queue of the people who look at large orders."
}

variable "alert_channel" {
  type        = string
  default     = "operations"
  description = "Channel for messages about failures."
}

plugin "pricing" {
  source = "./pricing.wasm"
}

plugin "review" {
  source = "./review.wasm"
  config = { queue = var.review_queue }
}

plugin "notify" {
  source = "./notify.wasm"
  config = { channel = var.alert_channel }
}
