// Package natsd runs the embedded NATS server, the only one on its data directory. No
// other package imports nats-server.
//
// To read it: server.go starts and stops the server. datadir.go, format.go and lock.go
// claim the data directory. accounts.go, rights.go and credentials.go decide who may do
// what; externalconfig.go gives the same for an external server. mend.go cuts damaged
// parts out of the files of streams before the server reads them: blocks.go and
// streamindex.go know these files, whose form is private to nats-server, and a test
// pins the version that they were written for. health.go and restart.go detect and end
// a state in which the server cannot write. backlog.go closes connections that do not
// read.
//
// The goroutines of the server end with [Server.Shutdown], which also closes the
// connections that it gave out.
package natsd
