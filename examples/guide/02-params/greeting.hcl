plugin "greet" {
  source = "../../hello/greet.wasm"
}

flow "greeting" {
  param "name" {
    type    = string
    default = "world"

    validation {
      condition     = length(param.name) <= 40
      error_message = "A name has at most 40 characters."
    }
  }

  task "greet" {
    plugin = plugin.greet
    input  = { name = param.name }
  }

  output "text" {
    value = task.greet.output.text
  }
}
