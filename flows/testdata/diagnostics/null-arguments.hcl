flow "a" {
  timeout = null
  task "t" {
    plugin  = null
    retries = null
  }
  trigger "message" "m" {
    subject = null
  }
}
