# Every task is real: none of them reaches anything outside.

test "the region with the highest total comes first" {
  assert {
    condition = startswith(run.output.letter, "Sales by region:\n  west  310.25\n")
  }
  assert {
    condition = length(task.regions.output) == 3
  }
}
