// Package render writes what commands show to people and programs: tables, runs,
// failures, the progress of a run, diagnostics and JSON.
//
// A [Terminal] is one stream with its width and colors. [Progress] shows the events
// of one run as they come; [RecordDiff] feeds it when only records of the run can be
// had, by turning the difference of two records into events. Fan-outs with more than a
// few items are summed up: in a progress by fanouts.go, in a run by [Selection].
// Everything that a guest or a client wrote passes [Printable] on its way to a
// terminal.
//
// The package starts no goroutines and reads nothing but its arguments.
package render
