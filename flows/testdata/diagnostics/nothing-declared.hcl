flow "a" {
  task "t" {
    plugin = plugin.pricing
    input  = [var.region, local.hosts, param.count]
  }
}
