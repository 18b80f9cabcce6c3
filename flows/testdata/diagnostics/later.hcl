flow "a" {
  trigger "schedule" "s" {
    every    = "1h"
    overlap  = "skip"
    catch_up = "latest"
  }

  trigger "webhook" "w" {
    path = "/x"
  }

  concurrency {
    on_limit = "skip"
  }

  task "t" {
    plugin   = "./greet.wasm"
    for_each = ["a"]
    input    = { key = each.key, at = run.previous_success_at, bad = task.u.errors }
    cache {
      ttl = "1h"
    }
  }

  task "u" {
    plugin = "https://example.com/x.wasm"
  }

  group "g" {
  }

  finally {
  }
}
