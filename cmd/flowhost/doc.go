// Command flowhost runs flows whose tasks are WebAssembly plugins.
//
// This package puts the other packages together. It alone handles signals, exit
// codes and the terminal: results go to stdout, everything else to stderr. There
// is one file per subcommand, named after it; node.go assembles host, journal and
// engine for exec and run, intake.go what run answers to others, remote.go the
// connection of the commands that work against a running host.
//
// Goroutines: those of node.start, which node.stop waits for; that of listenSignals,
// which the function that it gives waits for; the intake and the reloader of run,
// which node.intake waits for.
package main
