plugin "gone" {
  source = "./gone.wasm"
}

plugin "pinned" {
  source = "./greet.wasm"
  digest = "sha256:0000000000000000000000000000000000000000000000000000000000000000"
}

plugin "malformed" {
  source = "./greet.wasm"
  digest = "md5:1"
  config = "x"
}

flow "a" {
  task "t" {
    plugin = "./lost.wasm"
  }
  task "u" {
    plugin = "./lost.wasm"
  }
  task "v" {
    plugin = 7
  }
  task "w" {
    plugin = true ? plugin.gone : plugin.pinned
    input  = plugin.gone
  }
}
