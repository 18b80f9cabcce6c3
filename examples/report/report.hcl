# A letter about the sales of a month, from a file beside the flow, without a plugin of one's own.

locals {
  letter = file("letter.tmpl")
}

flow "monthly" {
  description = "Sums the sales of each region and writes a letter about them."

  trigger "schedule" "monthly" {
    cron     = "0 7 1 * *" # the first of a month, at seven
    timezone = "Europe/Berlin"
  }

  task "sales" {
    plugin   = "std/csv"
    function = "parse"
    input    = { text = file("sales.csv"), types = true }
  }

  task "regions" {
    plugin = "std/jq"
    input = {
      data  = task.sales.output.rows
      query = "group_by(.region) | map({ region: .[0].region, total: (map(.total) | add) }) | sort_by(-.total)"
    }
  }

  task "plausible" {
    plugin = "std/assert"
    input = {
      data = task.regions.output
      that = { "each region has sold something" = alltrue([for r in task.regions.output : r.total > 0]) }
    }
  }

  task "letter" {
    plugin = "std/template"
    input = {
      template = local.letter
      data     = { regions = task.plausible.output }
    }
  }

  output "letter" {
    value = task.letter.output.text
  }
}
