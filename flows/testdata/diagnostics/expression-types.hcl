flow "a" {
  param "count" {
    type = number
  }
  task "t" {
    plugin = "./greet.wasm"
    when   = "perhaps"
    input  = { a = 1 + "x", b = param.count.value, c = "${[]}" }
  }
  task "u" {
    plugin = "./greet.wasm"
    when   = null
    input  = param.count ? 1 : 2
    config = trigger.time.zone
  }
}
