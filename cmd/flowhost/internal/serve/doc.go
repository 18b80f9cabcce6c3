// Package serve assembles host, journal and engine: a node.
//
//	serve.go        the life of 'flowhost run'
//	sandbox.go      the sandbox host, which is also the catalog that flows are checked with
//	link.go         a node's side of NATS: embedded server or connection, streams, history
//	node.go         starts and stops the engine and everything beside it
//	intake.go       deploys flows, accepts messages and requests
//	hostcontrol.go  the state of the host, its pause and its graceful stop, for requests
//	reload.go       applies changed settings (livesettings.go) and flows when files change
//	                (filewatch.go)
//	guestlog.go     the logs of guests
//	compilemodules.go
//	                compiles modules while the flows are served
//	startup.go      what the host prints when it is ready
//
// Goroutines: those of Node.Start, which Node.Stop waits for; the intake, the
// reloader and the one that compiles modules, which Node.intake waits for.
package serve
