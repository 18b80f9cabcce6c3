# References to groups.
flow "a" {
  group "notify" {
    task "chat" {
      plugin = "./tool.wasm"
    }

    task "mail" {
      plugin = "./tool.wasm"
    }
  }

  task "use" {
    plugin = "./tool.wasm"
    input = {
      bare      = group.notify
      misspelt  = group.notify.outptu
      unknown   = group.notfy.output
      member    = group.notify.chat
      attempts  = group.notify.attempts
      errors    = group.notify.errors
      all       = group
      a_task    = group.chat.output
      a_group   = task.notify.output
      in_b      = group.other.output
      itself    = notify
      later     = group.cleaning.state
    }
  }

  task "ordered" {
    plugin = "./tool.wasm"
    after  = [group.x, group.notify.output, group, task.notify, group.chat]
  }

  task "single" {
    plugin = "./tool.wasm"
    after  = group.notify
  }

  group "held" {
    after = [group.cleaning, group.notfy]

    task "held_one" {
      plugin = "./tool.wasm"
    }
  }

  finally {
    group "cleaning" {
      after = [group.notify]

      task "clean" {
        plugin = "./tool.wasm"
        input  = group.notify.output
      }
    }
  }
}

flow "b" {
  group "other" {
    task "one" {
      plugin = "./tool.wasm"
    }
  }
}

flow "c" {
  group "asked" {
    wait "approval" {
      approval = "Go on?"
    }
  }

  output "by" {
    value = group.asked.approval.by
  }
}
