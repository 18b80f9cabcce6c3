// Package bus is everything NATS: the embedded server, the streams, the journal
// on JetStream, the events that others follow and the intake of triggers.
//
// # What lies where
//
//	FH_JOURNAL     fh.v1.journal.<shard>            commits; one writer per shard
//	FH_TRIGGERS    fh.v1.trigger.<flow>             messages that ask for a run
//	FH_EVENTS      fh.v1.run.<flow>.<run>.<kind>    what happened, for others to follow
//	FH_DEADLETTER  fh.v1.deadletter.<flow>          messages that cannot make a run
//	               fh.v1.api.run.<flow>, fh.v1.api.cancel   requests, micro service "flowhost"
//
// # Isolation
//
// Whoever may send a request may name any reply subject, and the server answers
// there: a publish acknowledgement, a consumer's messages. In one account that
// would let a client write into the journal without a permission to publish
// there. The embedded server therefore keeps the journal in an account of its
// own that only this process can enter: [Server.ConnectJournal] gives the
// connection for [ProvisionJournal] and [NewJournal], [Server.Connect] the one
// for everything else. With an external server one connection may serve both; an
// operator who does not trust its clients gives the journal an account there too.
//
// # Promises
//
// [Journal.Append] never reports success without an acknowledgement, and can be
// repeated. [Events] keeps the journal's order and does not skip: what is missing
// after a crash is found with [Events.Last]. A message of a stream is taken as
// decided only after the engine's commit, or after it is stored as a dead letter.
// A request that names a reply subject gets an answer.
//
// # Goroutines
//
// The embedded server's end with [Server.Shutdown], which also closes the
// connections it gave out; a connection's end when it is closed. [Events.Run] and
// [Intake.Run] block and end with their context; Run of an intake waits for the
// answers under way and for its readers. The package starts no others.
package bus
