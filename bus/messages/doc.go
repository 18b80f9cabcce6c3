// Package messages performs the operations publish and request of guests, in the account
// of the operator's subjects and streams.
//
// # What a publish promises
//
// Where a stream captures the subject, the stream's acknowledgement is awaited. The message
// has an id made of its run, task, key, subject, body, and its place among the attempt's
// messages of the same subject and body: another attempt that publishes the same gives the
// same ids, whatever the order, and the stream stores each message once, as long as it
// remembers the id (its duplicate window, two minutes by default). Elsewhere the message is
// sent, and the server has it when the answer arrives; whoever listens may receive it again
// from another attempt.
//
// Whether a stream captures a subject is asked of the server and remembered for some
// seconds. A stream that is made in these seconds stores the message as well; only the
// answer does not say so.
//
// # What guests cannot choose
//
// Subjects of the server, of flowhost and of inboxes are closed to every grant, and so are
// reply subjects and the headers that the server, clients or flowhost give a meaning to.
// Each message counts one hop more than the one that started the run, so that flows which
// start each other by messages come to an end.
//
// To read it: session.go, subject.go (which subjects), headers.go, publish.go with
// streams.go and id.go, request.go. The package starts no goroutines.
package messages
