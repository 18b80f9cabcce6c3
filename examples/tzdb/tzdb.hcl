plugin "zones" {
  source = "./zones.wasm"
}

flow "tzdb" {
  description = "Figures about the IANA time zone table, region by region."

  trigger "message" "asked" {
    subject = "tzdb.report"
  }

  task "parse" {
    plugin   = plugin.zones
    function = "parse"
    input    = { table = file("zone1970.tab") }
    timeout  = "30s"
  }

  task "africa" {
    plugin   = plugin.zones
    function = "region"
    input    = { region = "Africa", zones = task.parse.output.regions.Africa }
  }

  task "america" {
    plugin   = plugin.zones
    function = "region"
    input    = { region = "America", zones = task.parse.output.regions.America }
  }

  task "antarctica" {
    plugin   = plugin.zones
    function = "region"
    input    = { region = "Antarctica", zones = task.parse.output.regions.Antarctica }
  }

  task "asia" {
    plugin   = plugin.zones
    function = "region"
    input    = { region = "Asia", zones = task.parse.output.regions.Asia }
  }

  task "atlantic" {
    plugin   = plugin.zones
    function = "region"
    input    = { region = "Atlantic", zones = task.parse.output.regions.Atlantic }
  }

  task "australia" {
    plugin   = plugin.zones
    function = "region"
    input    = { region = "Australia", zones = task.parse.output.regions.Australia }
  }

  task "europe" {
    plugin   = plugin.zones
    function = "region"
    input    = { region = "Europe", zones = task.parse.output.regions.Europe }
  }

  task "indian" {
    plugin   = plugin.zones
    function = "region"
    input    = { region = "Indian", zones = task.parse.output.regions.Indian }
  }

  task "pacific" {
    plugin   = plugin.zones
    function = "region"
    input    = { region = "Pacific", zones = task.parse.output.regions.Pacific }
  }

  task "report" {
    plugin   = plugin.zones
    function = "report"

    input = {
      zones = task.parse.output.zones
      regions = [
        task.africa.output,
        task.america.output,
        task.antarctica.output,
        task.asia.output,
        task.atlantic.output,
        task.australia.output,
        task.europe.output,
        task.indian.output,
        task.pacific.output,
      ]
    }
  }

  output "totals" {
    value = task.report.output.totals
  }

  output "regions" {
    value       = task.report.output.regions
    description = "One row for each region, the one with the most zones first."
  }

  output "markdown" {
    value       = task.report.output.markdown
    description = "The same as a table for people."
  }
}
