// Package run holds the words that the parts of flowhost speak with each other
// and the state machine of a run.
//
// A run is one execution of a flow. Everything that happens to it is an [Event];
// [Shard.Apply] folds events, in the order in which the journal holds them, into
// the state of runs. The fold reads nothing but its arguments: no clock, no
// randomness, no I/O. Replaying a journal therefore gives the state that the
// engine had in memory when it wrote it.
//
//	run:       pending → running → succeeded | failed | canceled
//	task run:  waiting → ready → running → succeeded | failed | skipped | canceled
//	                       ↑________│ (retry, with a due time)
//
// The package starts no goroutines and imports only the standard library. None
// of its types is safe for concurrent use: the engine's loop owns them.
package run
