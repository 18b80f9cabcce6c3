flow "a" {
  task "t" {
    plugin = "./greet.wasm"
    input  = [-1e9999]
  }
  output "o" {
    value = { n = 1e9999 }
  }
}
