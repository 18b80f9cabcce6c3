variable "needed" {
  type = string
}

variable "wrong" {
  type    = number
  default = "x"
}

variable "checked" {
  default = 5
  validation {
    condition     = var.checked > 10
    error_message = "It must be more than ten, and is ${var.checked}."
  }
}

variable "kind" {
  type = strng
}

variable "computed" {
  default = var.needed
}

variable "foreign" {
  default = 1
  validation {
    condition     = var.needed == ""
    error_message = "x"
  }
}

flow "a" {
  task "t" {
    plugin = "./greet.wasm"
    input  = [var.needed, var.wrong, var.checked, var.kind]
  }
}
