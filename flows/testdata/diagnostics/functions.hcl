flow "a" {
  task "t" {
    plugin = "./greet.wasm"
    input = {
      a = uper("x")
      b = timestamp()
      c = uuid()
      d = setproduct(range(1000), range(1000))
      e = upper("a", "b")
    }
  }
}
