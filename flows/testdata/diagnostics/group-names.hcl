# Tasks and groups of a flow have names of their own each, however deep.
flow "a" {
  task "load" {
    plugin = "./tool.wasm"
  }

  group "load" {
    task "first" {
      plugin = "./tool.wasm"
    }

    group "both" {
      task "load" {
        plugin = "./tool.wasm"
      }

      group "first" {
        task "last" {
          plugin = "./tool.wasm"
        }
      }

      group "both" {
        task "other" {
          plugin = "./tool.wasm"
        }
      }
    }
  }

  finally {
    group "clean" {
      task "last" {
        plugin = "./tool.wasm"
      }
    }
  }
}
