// Package feed serves the events of runs to followers, by a cursor: each event once and
// in order, or a reset that reports which are missing. It reads the journal, and the
// history for runs that the journal no longer holds. Followers share a bounded part of
// the processor.
//
// To read it: feed.go answers a query in turns, commits.go reads the journal, ends.go
// the history, cursor.go is the form of a cursor. [Feed.Run] blocks and ends with its
// context.
package feed
