// Package jskit has what every part of bus needs of JetStream and nats.go does not give:
// attempts that are repeated with a backoff, a reader that follows a stream without
// acknowledgements, and a publisher that keeps order and leaves no gap. It knows no
// stream of flowhost's.
//
// To read it: backoff.go, errors.go (which errors are permanent), reader.go,
// publisher.go with burst.go (few acknowledgements for many messages) and unsynced.go
// (acknowledged messages that the server may still lose).
package jskit
