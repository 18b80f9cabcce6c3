plugin "golang" {
  source = "./golang.wasm"
  config = { room = "data" }
}

plugin "bare" {
  source = "./golang.wasm"
}

flow "fits" {
  task "a" {
    plugin = plugin.golang
    input  = { name = run.id, AT = { city = run.id } }
    config = { LEAST = 3 }
  }
  task "b" {
    plugin = plugin.golang
    input  = { Name = run.id, At = null }
  }
  task "c" {
    plugin = plugin.golang
    input  = local.who
  }
  locals {
    who = { name = run.id }
  }
}

flow "does_not" {
  task "a" {
    plugin = plugin.golang
    input  = { name = { of = run.id }, at = { town = run.id } }
    config = { least = "three" }
  }
  task "b" {
    plugin = plugin.bare
    input  = { nme = run.id }
  }
}
