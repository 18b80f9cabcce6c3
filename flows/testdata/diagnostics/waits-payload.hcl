flow "a" {
  wait "boss" {
    approval = "Go on?"
  }
  wait "night" {
    duration = "8h"
  }
  wait "news" {
    subject = "a.news"
  }
  task "t" {
    plugin = "./greet.wasm"
    input = {
      approved = wait.boss.payload.aproved
      by       = wait.boss.payload.by + 1
      said     = wait.boss.payload.payload.anything
      slept    = wait.night.payload.hours
      none     = wait.night.payload
      perhaps  = try(wait.night.payload.hours, 0)
      message  = wait.news.payload.anything
    }
  }
}
