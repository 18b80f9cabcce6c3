variable "shop" {
  type    = object({ name = string })
  default = { name = "main" }
  validation {
    condition     = var.shop.nmae != ""
    error_message = "A shop has a name."
  }
}

flow "a" {
  param "count" {
    type    = number
    default = 1
    validation {
      condition     = param.count + 1
      error_message = "Too few."
    }
  }
  param "lines" {
    type = list(object({ sku = string }))
    validation {
      condition     = alltrue([for l in param.lines : l.skuu != ""])
      error_message = "Something has no name: ${param.lines}"
    }
    validation {
      condition     = legnth(param.lines) > 0
      error_message = "Nothing."
    }
    validation {
      condition     = length(param.lines) > 0
      error_message = "Nothing: ${param.lines[0].name}"
    }
  }
  task "t" {
    plugin = "./greet.wasm"
  }
}
