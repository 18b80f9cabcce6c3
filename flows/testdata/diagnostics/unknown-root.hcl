flow "a" {
  param "count" {
    type = number
  }
  task "price" {
    plugin = "./greet.wasm"
  }
  task "t" {
    plugin = "./greet.wasm"
    input = {
      a = price.output
      b = count
      c = vars.x
      d = tsk.price.output
      e = hello
    }
  }
}
