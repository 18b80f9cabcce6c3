// Package api is what a host and its clients share: the verbs of the micro service
// "flowhost", the bodies of requests and answers, the codes of errors, and the client.
// Package intake serves it.
//
// To read it: verbs.go and answers.go, then the file of a subject (runs, schedules,
// backfills, …) for its bodies, and client.go with the files client*.go.
//
// The goroutines of a connection end when it is closed, also those of a [Client].
package api
