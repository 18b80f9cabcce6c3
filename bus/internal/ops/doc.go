// Package ops has what operations of every kind share: reading a head, writing an answer,
// and the fault that an error of NATS becomes.
//
// To read it: head.go, then faults.go.
package ops
