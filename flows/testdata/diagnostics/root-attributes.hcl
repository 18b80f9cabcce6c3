flow "a" {
  task "t" {
    plugin = "./greet.wasm"
    input  = [trigger.paylod, run.idd, flow.nam, trigger, run]
  }
  on_failure {
    task "u" {
      plugin = "./greet.wasm"
      input  = error.mesage
    }
  }
}
