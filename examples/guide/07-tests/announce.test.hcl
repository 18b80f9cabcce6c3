test "the chat is enough" {
  assert {
    condition = run.output.by == "chat" && task.mail.state == "skipped"
  }
}

test "a mail is sent when the chat hangs" {
  mock "chat" {
    hangs = true
  }

  # Two attempts of a minute, and the delay of a second between them.
  assert {
    condition = task.chat.attempts == 2 && task.chat.duration == 121
  }
  assert {
    condition     = run.output.by == "mail"
    error_message = "The message went out by ${run.output.by}."
  }
}
