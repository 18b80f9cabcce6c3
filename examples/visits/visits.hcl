# Counts visits by page, for other systems on NATS, without a plugin of one's own.

flow "count" {
  description = "Counts a visit of a page and announces each hundredth."

  trigger "message" "visit" {
    subject = "visits.seen"
    filter  = can(trigger.payload.page)
  }

  task "page" {
    plugin = "std/jq"
    input = {
      data  = trigger.payload.page
      query = "sub(\"[?#].*$\"; \"\") | ltrimstr(\"/\") | gsub(\"[^a-zA-Z0-9]+\"; \"-\") | if . == \"\" then \"home\" else . end"
    }
  }

  task "count" {
    plugin   = "std/kv"
    function = "count"
    input    = { bucket = "visits", key = task.page.output }

    grant {
      kv = { visits = "rw" }
    }
  }

  task "announce" {
    when     = task.count.output.value % 100 == 0
    plugin   = "std/message"
    function = "publish"
    input    = { subject = "visits.hundreds", data = { page = task.page.output, visits = task.count.output.value } }

    grant {
      publish = ["visits.hundreds"]
    }
  }

  output "visits" {
    value = task.count.output.value
  }
}
