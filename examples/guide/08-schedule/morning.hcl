plugin "greet" {
  source = "../../hello/greet.wasm"
}

flow "morning" {
  trigger "schedule" "workdays" {
    cron     = "30 7 * * mon-fri"
    timezone = "Europe/Berlin"
    overlap  = "skip"
    catch_up = "latest"
  }

  task "greet" {
    plugin = plugin.greet
    input  = { name = "everybody, it is ${formatdate("EEEE", trigger.time)}" }
  }
}
