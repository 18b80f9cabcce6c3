# What a group holds cannot wait for the group.
flow "a" {
  locals {
    told = group.outer.output
  }

  group "outer" {
    after = [group.outer]
    when  = group.outer.state == "succeeded"

    task "reads" {
      plugin = "./tool.wasm"
      input  = group.outer.output
    }

    task "through" {
      plugin = "./tool.wasm"
      input  = local.told
    }

    group "inner" {
      after = [group.outer]

      task "deep" {
        plugin = "./tool.wasm"
        after  = [group.outer, group.inner, task.deep]
      }
    }
  }

  group "race" {
    mode = "race"

    task "runner" {
      plugin = "./tool.wasm"
      input  = group.race.output
    }
  }
}
