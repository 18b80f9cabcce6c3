// Package health watches what commits depend on: the embedded server, its disk and the
// journals. It reports why new runs should not be accepted, and restarts a server that
// cannot write. [Watcher.Run] blocks and ends with its context.
package health
