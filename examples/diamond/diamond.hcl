plugin "primes" {
  source = "./primes.wasm"
}

flow "diamond" {
  description = "Count the primes below a limit, in two halves at the same time."

  param "limit" {
    type        = number
    default     = 500000
    description = "Primes below this number are counted; 2 to 5 million."
  }

  trigger "schedule" "minutely" {
    every = "1m"
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
    timeout  = "2m"
  }

  task "right" {
    plugin   = plugin.primes
    function = "count"
    input    = task.split.output.right
    timeout  = "2m"
  }

  task "join" {
    plugin   = plugin.primes
    function = "join"
    input    = [task.left.output, task.right.output]
  }

  output "primes" {
    value       = task.join.output.primes
    description = "How many primes are below the limit."
  }

  output "largest" {
    value = task.join.output.largest
  }
}
