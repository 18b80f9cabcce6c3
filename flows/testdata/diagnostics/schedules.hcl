flow "a" {
  trigger "schedule" "none" {
  }
  trigger "schedule" "both" {
    cron  = "0 * * * *"
    every = "1h"
  }
  trigger "schedule" "bad" {
    cron     = "61 * * * *"
    timezone = "Europe/Berln"
  }
  trigger "schedule" "impossible" {
    cron = "0 0 30 2 *"
  }
  trigger "schedule" "fast" {
    every = "10us"
  }
  trigger "shedule" "kind" {
    every = "1h"
  }
  task "t" {
    plugin = "./greet.wasm"
  }
}
