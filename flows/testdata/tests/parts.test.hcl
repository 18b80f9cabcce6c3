test "mocks" {
  flow = "release"

  mock "cutoff" {}
  mock "wait.cutoff" {}
  mock "build" {
    output = each.key
  }
  mock "copy" {
    output = each.val
    fail   = each
  }
  mock "copy/x" {}
  mock "ship" {
    output = { at = 5 }
  }
  mock "ship/sned" {}
  mock "ship/send" {}
}

test "assertions" {
  flow = "release"

  assert {
    condition = wait.cutof.state == "x" || wait.cutoff.output == "x" || task.cutoff.state == "x" || wait.state == "x"
  }
  assert {
    condition = group.al.state == "x" || group.all.duration == 1 || task.all.state == "x"
  }
  assert {
    condition = task.copy.items[0].stat == "x" || task.copy.item == 1 || task.build.items == [] || task.build.errors == []
  }
  assert {
    condition = task.copy.items["eu"].error == null && runs[0].wait.cutoff.payloud == 1 && runs[0].group.all.stat == 1 && each.key == 1
  }
}

mock "ship/sned" {}
mock "ship/send" {}
