plugin "typed" {
  source = "./typed.wasm"
}

flow "a" {
  task "tree" {
    plugin   = plugin.typed
    function = "tree"
    input    = { value = 1, left = { value = 2, right = { valeu = 3 } } }
  }

  task "again" {
    plugin   = plugin.typed
    function = "tree"
    input    = { value = task.tree.output.left.left.left.values }
  }

  task "whole" {
    plugin   = plugin.typed
    function = "tree"
    input    = { value = 1, right = task.tree.output.left }
  }
}
