// Package intake turns messages into requests to an engine: those of the micro service
// "flowhost", of the stream FH_TRIGGERS, and those to which flows listen.
//
// To read a request: endpoints.go lists the verbs, queue.go gives each request a place,
// requests.go decodes and submits it, the file of a subject (runs.go, schedules.go, …)
// handles it, answer.go answers. Requests that wait for something to happen have a place
// in waitingroom.go. To read a trigger: triggers.go reads FH_TRIGGERS (missing.go and
// truncated.go find what the stream has lost, trimmer.go removes what is decided),
// listening.go subscribes to the subjects of flows, consumer.go reads streams of others.
// waits.go and waitreader.go end waits of runs with messages. deadletterstore.go stores what
// cannot make a run, deadletterlist.go shows it, and deadlettersend.go makes the request
// again. artifacts.go hands out what tasks have stored, buckets.go lets the operator read and
// write their keys. host.go pauses and drains the host, decline.go answers while it stops.
//
// A message of a stream is taken as decided only after the engine's commit, or after it
// is stored as a dead letter. A request that names a reply subject gets an answer.
// [Intake.Run] blocks, ends with its context, and waits for the answers under way and
// for the goroutines that read streams.
package intake
