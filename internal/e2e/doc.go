// Package e2e tests the built program as other systems meet it: as a process
// with signals and an exit code, and over NATS with the credentials that it
// leaves in its data directory.
//
// The tests build cmd/flowhost and the plugins once, from this tree, and serve
// copies of the examples or own flows. They contain subjects, headers and
// JSON as literals and decode into separate types: what breaks them breaks other
// systems break on too.
//
// Nothing sleeps. A test waits for a message, for a line of the program's output
// or for its end, each with a deadline.
package e2e
