// Package tasklog stores the lines that tasks write while they run, in stream FH_LOGS.
// Nothing waits for a line, and a crash may lose the last ones.
//
// To read it: logs.go collects lines, store.go stores them, message.go is the form of a
// message, read.go reads the log of a run. [Store.Run] blocks and ends with its context.
package tasklog
