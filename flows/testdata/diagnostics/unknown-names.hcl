variable "region" {
  default = "eu"
}

locals {
  hosts = ["a"]
}

plugin "pricing" {
  source = "./greet.wasm"
}

flow "a" {
  param "count" {
    type = number
  }
  task "t" {
    plugin = plugin.pircing
    input = {
      a = var.regoin
      b = local.host
      c = param.cuont
      d = var.something_else
    }
  }
}
