// Package bus is everything NATS: the embedded server, the streams, the journal
// on JetStream, the events that others follow, the logs of tasks, the intake of
// triggers and requests, and the client that sends these.
//
// # What lies where
//
//	FH_JOURNAL     fh.v1.journal.<shard>            commits; one writer per shard
//	FH_SNAPSHOTS   FH_BLOBS                         buckets of objects, beside the journal
//	FH_TRIGGERS    fh.v1.trigger.<flow>             messages that ask for a run
//	FH_EVENTS      fh.v1.events.<flow>.<run>        a copy of what happened, in account APP; nothing depends on it
//	FH_MARKS       fh.v1.mark.<shard>               how far others know of a journal
//	FH_LOGS        fh.v1.log.<flow>.<c>             lines that tasks write while they run
//	FH_HISTORY     fh.v1.history.<flow>.<state>     records of finished runs
//	               fh.v1.historypart.<flow>.<state>.<n>   parts of the large ones
//	FH_DEADLETTER  fh.v1.deadletter.<flow>          messages that cannot make a run
//	               fh.v1.api.run.<flow>, fh.v1.api.<verb>   requests, micro service "flowhost"
//
// # Isolation
//
// Whoever may send a request may name any reply subject, and the server answers
// there: a publish acknowledgement, a consumer's messages. In one account that
// would let a client write into the journal, or delete a stream, without a permission
// to publish there. The embedded server therefore has three accounts: ENGINE, which only
// this process can enter ([Server.ConnectEngine]), holds everything but the events; APP
// ([Server.ConnectApp]) is the operator's, where flows listen and events are; CLIENT has
// no JetStream. Requests and triggers come into ENGINE by service imports, on which the
// server replaces the reply subject. [ServerConfiguration] gives the same for an
// external server; with one account there, one connection may serve both.
//
// # Promises
//
// [Journal.Append] never reports success without an acknowledgement, and can be
// repeated; it waits for a server that is away, full or unable to write, and [Health]
// tells so and starts the embedded one again. [Journal.Replay] gives all commits or
// says which are missing. An object of [Objects] is there as a whole or not at all.
// [History] skips no finished run: what is missing after a crash is found with
// [History.Last], and what it has flushed the journal may forget. It finds records by an
// index that it makes again when it must. [Mark] says how far others may know of a
// journal. [Feed] gives each event once and in order, or says that some are missing.
// [Events] and [Logs] promise less: nothing waits for them. A message of a stream is taken as decided only after the engine's commit, or after it
// is stored as a dead letter. A request that names a reply subject gets an answer.
//
// # Goroutines
//
// The embedded server's end with [Server.Shutdown], which also closes the
// connections it gave out; a connection's, also that of a [Client], end when it is
// closed. [Events.Run], [History.Run], [Logs.Run], [Health.Run] and [Intake.Run] block
// and end with their context. Run of an intake waits for the answers under way and for
// those that read streams and look after waits, Run of a history for its publisher.
// The package starts no others.
package bus
