// Package engine advances runs: it accepts requests, starts each task when its own
// dependencies are done, retries, cancels, enforces timeouts, records everything in a
// journal and resumes from the journal after a restart.
//
// # Files
//
// To read a run from its request to its record, start at submit.go; the comment at the
// head of advance.go lists the path through eight files. Beside them:
//
//   - engine.go, executor.go: the public face with the loop, and what the loop owns;
//   - openrun.go, clock.go: an open run, and the engine's time and timers;
//   - groups.go, fan.go, waits.go, signals.go, subflows.go, hooks.go: the kinds of nodes
//     of a flow;
//   - evaluate.go: what takes long to evaluate;
//   - place.go, limits.go, runlimits.go, overlap.go: what a task or a run may have to wait
//     for;
//   - cancel.go, retry.go, carryover.go: canceling runs, and making them again;
//   - schedules.go, schedulecontrol.go, fires.go, backfills.go, flowtriggers.go: what
//     starts runs without a request;
//   - recover.go, resume.go, snapshots.go, compactor.go, blobs.go: restarts;
//   - read.go, waitreasons.go: what can be asked for;
//   - seams.go, sim.go: the world outside.
//
// # Ownership
//
// One loop, on the goroutine that calls [Engine.Run], owns the state of all runs. Only
// the loop applies events, talks to the journal's writer and decides what happens next.
// All methods of [Engine] hand the loop a command and wait for its answer. Requests are
// admitted by their flows on the goroutines of those who make them.
//
// An expression is evaluated on the loop with a small budget, and beside it when that is
// not enough. Meanwhile its run is busy: it changes in no way, and what happens to it waits.
// A watchdog reports turns of the loop that take more than 50 ms of a processor.
//
// Run starts these goroutines and waits for all of them before it returns:
//
//   - workers, see package workers; each takes one attempt at a time, passes it to the
//     [Invoker] and returns one result;
//   - evaluations that take long, as many as there are processors;
//   - the committer, which appends one commit at a time to the [Journal];
//   - the notifier, which passes durable events to the observers, in order;
//   - the compactor, which stores snapshots and shortens the journal;
//   - the timer, which owns the heap of due times: fires, retries, deadlines.
//
// # What is promised
//
// Whatever leaves the process waits for the journal: a receipt, a record or a notice
// is given out only after the events that it depends on are durable. Nothing inside
// the process waits: a task may start while the commit that accepted its run is still
// being written.
//
// A run that carries over more from an earlier one than fits into a commit is accepted
// in several commits, and starts after the last. If the process ends in between, the
// run is canceled: nobody has received its receipt.
//
// Tasks are executed at least once and recorded exactly once. An attempt that was
// running when the process ended is recorded as lost and repeated.
//
// Every queue is bounded. While more than 4 MiB of events are on their way to the
// journal, or observers are more than 64 commits behind, the loop accepts neither
// commands nor results: callers wait, bounded by their contexts.
package engine
