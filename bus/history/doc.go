// Package history keeps the records of finished runs in stream FH_HISTORY and finds
// them by its own index, which it rebuilds from the stream when it must. It skips
// no finished run: [Store.Last] finds what is missing after a crash, and what
// [Store.Flush] has flushed the journal may forget.
//
// To read it: history.go takes and gives records, parts.go splits those that are larger
// than a message. entry.go and index.go are the index, follow.go keeps it up to date,
// run.go owns it while [Store.Run] runs. page.go lists runs. ends.go has what followers
// of events read, artifacts.go which artifacts records refer to.
//
// [Store.Run] blocks and ends with its context; it starts one goroutine, for its
// publisher, and waits for it.
package history
