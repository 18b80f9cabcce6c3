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
  trigger "schedule" "offset" {
    cron   = "0 * * * *"
    offset = "5m"
  }
  trigger "schedule" "beyond" {
    every     = "1h"
    offset    = "2h"
    day_match = "and"
    dst       = "skip"
  }
  trigger "schedule" "local" {
    at = "2026-12-24 18:00"
  }
  trigger "schedule" "weekday" {
    calendar = "Mox *-*-* 09:00"
  }
  trigger "schedule" "empty" {
    calendar = "yearly"
    start    = "2026-02-01T00:00:00Z"
    end      = "2026-11-01T00:00:00Z"
  }
  trigger "schedule" "words" {
    cron        = "0 2 * * *"
    dst         = "summer"
    overlap     = "que"
    overlap_max = 3
    catch_up    = "last"
    count       = 0
    splay       = "hash"
    jitter      = "soon"
    pause_after = 1.5
  }
  trigger "schedule" "splayed" {
    every       = "1h"
    splay       = "hash"
    overlap_max = 0
  }
  trigger "shedule" "kind" {
    every = "1h"
  }
  task "t" {
    plugin = "./greet.wasm"
  }
}
