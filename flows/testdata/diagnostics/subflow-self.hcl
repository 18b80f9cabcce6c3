flow "countdown" {
  param "n" {
    type    = number
    default = 3
  }

  concurrency {
    limit = 5
  }

  task "next" {
    flow  = flow.middle
    when  = param.n > 0
    input = { n = param.n }
  }
}

flow "middle" {
  param "n" {
    type = number
  }
  task "next" {
    flow  = flow.countdown
    input = { n = param.n - 1 }
  }
}

flow "itself" {
  task "again" {
    flow = flow.itself
  }
}
