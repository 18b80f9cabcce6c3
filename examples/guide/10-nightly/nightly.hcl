variable "regions" {
  type = map(object({ host = string }))
  default = {
    eu = { host = "pg.eu.example" }
    us = { host = "pg.us.example" }
  }
}

limit "warehouse" {
  concurrency = 8
  rate        = "600/m"
}

plugin "pg" {
  source = "../../nightly/pg.wasm"
}

plugin "warehouse" {
  source = "../../nightly/warehouse.wasm"
  config = { room = "data" }
}

flow "nightly" {
  description = "Copy the tables that have changed since the last night that succeeded."
  timeout     = "4h"

  trigger "schedule" "night" {
    cron     = "15 2 * * *"
    timezone = "Europe/Berlin"
    overlap  = "skip"
    catch_up = "latest"
  }

  defaults {
    timeout = "10m"

    retry {
      attempts = 3
      delay    = "10s"
    }
  }

  task "discover" {
    for_each = var.regions
    plugin   = plugin.pg
    function = "list_tables"
    input    = { host = each.value.host, since = coalesce(run.previous_success_at, "1970-01-01T00:00:00Z") }
  }

  locals {
    tables = flatten([for region, tables in task.discover.output : [for t in tables : { region = region, table = t }]])
    copied = [for t in task.copy.output : t.rows if t != null]
  }

  task "copy" {
    for_each = local.tables
    on_error = "continue"
    plugin   = plugin.warehouse
    function = "copy_table"
    limit    = limit.warehouse
    input    = each.value
  }

  group "notify" {
    mode = "first_success"

    task "chat" {
      plugin   = plugin.warehouse
      function = "chat"
      input    = { text = "copied ${sum(local.copied)} rows, ${length(task.copy.errors)} tables failed" }
    }

    task "mail" {
      plugin   = plugin.warehouse
      function = "mail"
      input    = { subject = "nightly ${run.id}" }
    }
  }

  output "rows" {
    value = sum(local.copied)
  }

  output "failed" {
    value = length(task.copy.errors)
  }

  on_failure {
    task "alarm" {
      plugin   = plugin.warehouse
      function = "mail"
      input    = { subject = "nightly failed in ${error.task}: ${error.message}" }
    }
  }
}
