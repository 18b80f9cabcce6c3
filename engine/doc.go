// Package engine advances runs: it accepts requests, starts tasks the moment
// their own dependencies are done, retries, cancels, times out, records
// everything in a journal and continues from the journal after a restart.
//
// # Ownership
//
// One loop, on the goroutine that calls [Engine.Run], owns the state of all runs.
// It alone applies events, talks to the journal's writer and decides what is
// next. All methods of [Engine] hand the loop a command and wait for its answer.
//
// Run starts these goroutines and waits for all of them before it returns:
//
//   - Config.Workers workers; each takes one attempt at a time, gives it to the
//     [Invoker] and returns one result;
//   - the committer, which appends one commit at a time to the [Journal];
//   - the notifier, which gives durable events to the observers, in order;
//   - the timer, which owns the heap of due times: fires, retries, deadlines.
//
// # What is promised
//
// What leaves the process waits for the journal: a receipt, a record or a notice
// is given out only after the events that it rests on are durable. What stays
// inside does not wait: a task may start while the commit that accepted its run
// is still on its way.
//
// A run that takes over more from another one than a commit holds is accepted in
// several, and starts after the last: one that the process's end cut off was promised
// to nobody and is canceled.
//
// Tasks are executed at least once and recorded exactly once. An attempt that was
// under way when the process ended is recorded as lost and made again.
//
// Every queue is bounded. While more than 4 MiB of events are on their way to
// the journal, or observers are more than 64 commits behind, the loop takes
// neither commands nor results: callers wait, bounded by their contexts.
package engine
