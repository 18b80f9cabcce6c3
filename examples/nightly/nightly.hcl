flow "nightly" {
  trigger "schedule" "night" {
    cron     = "15 2 * * *"
    timezone = "Europe/Berlin"
    overlap  = "skip"
    catch_up = "latest"
  }

  task "discover" {
    for_each = var.regions
    plugin   = plugin.pg
    function = "list_tables"
    input    = { host = each.value.host, since = coalesce(run.previous_success_at, "1970-01-01T00:00:00Z") }
  }

  locals {
    tables = flatten([for region, tables in task.discover.output : [for t in tables : { region = region, table = t }]])
  }

  task "copy" {
    for_each     = local.tables
    max_parallel = 8
    on_error     = "continue"
    plugin       = plugin.warehouse
    function     = "copy_table"
    input        = each.value
  }

  group "notify" {
    mode = "first_success"
    task "chat" {
      plugin   = plugin.warehouse
      function = "chat"
      input    = { text = "copied ${sum(task.copy.output[*].rows)} rows, ${length(task.copy.errors)} tables failed" }
    }
    task "mail" {
      plugin   = plugin.warehouse
      function = "mail"
      input    = { subject = "nightly ${run.id}" }
    }
  }
}
