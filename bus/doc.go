// Package bus connects flowhost to NATS. The package itself has what all its parts
// share: the names of streams, subjects and headers, and the connection. The parts:
//
//	natsd     the embedded server, its accounts and its data directory
//	journal   commits, the objects beside them, and how far others know of them
//	health    whether commits can be written, and the restart of a server that cannot
//	history   records of finished runs
//	events    what happens to runs, published for others to see
//	feed      the same by a cursor, without a gap
//	tasklog   lines that tasks write
//	api       requests, answers and the client
//	intake    triggers and requests, handed to the engine
//	kv        buckets of tasks
//	messages  what tasks publish and ask for
//	artifacts blobs of tasks that are larger than a message
//
// To read this package: subjects.go, streams.go and keeper.go (which creates the streams
// and looks after them), connect.go. To read how a run comes in: package intake.
//
// # Streams
//
//	FH_JOURNAL     fh.v1.journal.<shard>            commits; one writer per shard
//	FH_SNAPSHOTS   FH_BLOBS                         buckets of objects, beside the journal
//	FH_TRIGGERS    fh.v1.trigger.<flow>             messages that ask for a run
//	FH_EVENTS      fh.v1.events.<flow>.<run>        a copy of what happened, in account APP; nothing depends on it
//	FH_MARKS       fh.v1.mark.<shard>               how far others know of a journal
//	FH_OWNER       fh.v1.owner.<shard>              which host uses a journal, on external servers
//	FH_LOGS        fh.v1.log.<flow>.<c>             lines that tasks write while they run
//	FH_HISTORY     fh.v1.history.<flow>.<state>     records of finished runs
//	               fh.v1.historypart.<flow>.<state>.<n>   parts of the large ones
//	KV_FH_KV_<bucket>   OBJ_FH_ARTIFACTS            buckets of tasks; artifacts, on external servers
//	FH_DEADLETTER  fh.v1.deadletter.<flow>          messages that cannot make a run
//	               fh.v1.api.run.<flow>, fh.v1.api.<verb>   requests, micro service "flowhost"
//
// # Isolation
//
// Whoever may send a request may name any reply subject, and the server answers
// there: a publish acknowledgement, a consumer's messages. In one account that
// would let a client write into the journal, or delete a stream, without a permission
// to publish there. The embedded server therefore has three accounts: ENGINE, which only
// this process can enter, holds everything but the events; APP is the operator's, where
// flows listen and events are; CLIENT has no JetStream. Requests and triggers come into
// ENGINE by service imports, on which the server replaces the reply subject. Package
// natsd gives the same configuration for an external server; with one account there, one
// connection may serve both.
//
// # Goroutines
//
// The goroutines of a connection end when it is closed. [Keeper.Run] blocks and ends
// with its context. The package starts no others; each part documents its own.
package bus
