// Package ops has what operations of every kind share: reading a head, writing an answer,
// the fault that an error of NATS becomes, and storing a message in a busy stream.
//
// To read it: head.go, faults.go, publish.go.
package ops
