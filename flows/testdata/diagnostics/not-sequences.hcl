flow "a" {
  task "t" {
    plugin = "./greet.wasm"
    input  = [sum(["x"]), one([1, 2]), index([1], 2), length(true), timecmp("now", "then"), urldecode("%zz"), sum("x")]
  }
}
