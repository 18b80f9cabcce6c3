plugin "primes" {
  source = "../../diamond/primes.wasm"
}

flow "primes" {
  param "limit" {
    type    = number
    default = 1000
  }

  task "split" {
    plugin   = plugin.primes
    function = "split"
    input    = { limit = param.limit }
  }

  task "left" {
    plugin   = plugin.primes
    function = "count"
    input    = task.split.output.left
  }

  task "right" {
    plugin   = plugin.primes
    function = "count"
    input    = task.split.output.right
  }

  task "join" {
    plugin   = plugin.primes
    function = "join"
    input    = [task.left.output, task.right.output]
  }
}
