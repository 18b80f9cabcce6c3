// Package flows turns flow files, written in HCL or its JSON form, into checked
// flows, and evaluates their expressions while runs go on.
//
// [Load] reads folders and files; [Restore] makes the same flows of what a run
// recorded. Everything wrong with the files is found by then and comes back as
// [hcl.Diagnostics], all of it at once, each with a stable rule ([RuleOf]), the
// place and what to do.
//
// # Two phases
//
// The values var.*, local.*, plugin.* and flow.name are fixed when a flow is
// loaded; param.*, trigger.*, run.*, task.* and error.* exist only in a run. A
// reference to a task is an edge of the flow's graph. Expressions without run
// values are evaluated once, at load; the others through a [Scope], which
// converts each JSON value that they need once per run.
//
// # JSON
//
// Values travel between tasks as JSON. An input that is nothing but a reference
// to a task's output, or to the trigger's payload, passes on the recorded bytes.
// Anything else goes through cty: numbers keep up to 512 bits, strings are
// normalised to Unicode NFC, the keys of objects come out sorted.
//
// The package starts no goroutines. A [Set] and what it holds may be used
// concurrently; a [Scope] may not.
package flows
