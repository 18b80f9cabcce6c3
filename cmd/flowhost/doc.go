// Command flowhost runs flows whose tasks are WebAssembly plugins.
//
// There is one file per command, named after it: cmd_*.go; small sub-commands of one noun
// share a file. Each builds its command, reads its flags and calls the packages below;
// root.go lists the commands.
//
//	internal/cli        streams, exit codes, help, arguments, signals
//	internal/render     tables, runs, failures, progress, JSON
//	internal/settings   flowhost.hcl
//	internal/flowfiles  loading of flow files, variables, --param
//	internal/remote     the connection to a running host, selectors, waiting for runs
//	internal/serve      host, journal and engine of exec and run
//	internal/declared   connections and secrets of flow files and settings
//	internal/plan       differences between sets of flows
//	internal/simulate   simulations of schedules and of runs
//	internal/timetable  times of schedules
//	internal/graph, internal/testreport, internal/gobuild, internal/outfile, internal/buildinfo
//
// Only this program handles signals, exit codes and the terminal: results go to
// stdout, everything else to stderr.
package main
