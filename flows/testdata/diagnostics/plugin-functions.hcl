flow "a" {
  task "t" {
    plugin   = "./pricing.wasm"
    function = "aprove"
  }
  task "u" {
    plugin = "./notify.wasm"
  }
  task "v" {
    plugin   = "./tool.wasm"
    function = "x"
  }
}
