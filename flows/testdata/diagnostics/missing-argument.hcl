plugin "p" {
}

flow "a" {
  trigger "message" "m" {
  }

  task "t" {
    function = "x"
  }

  output "o" {
  }
}
