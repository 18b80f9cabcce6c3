test "a flow" {
  flow = "ordes"
}

test "no flow" {
}

test "names" {
  flow    = "orders"
  trigger = "create"
  params  = { cuont = 1 }
  payload = { limit = var.limt, url = local.urll }

  mock "fech" {}
  mock_plugin "type" {}

  assert {
    condition = run.stat == "x" || task.gret.state == "x" || task.greet.attempt > 1 || tasks.greet.state == "x"
  }
  assert {
    condition = runs[0].sate == "x" || runs[0].task.grt.state == "x" || runs[1].task.greet.ouput == 1
  }
}
