// Package flows turns flow files, written in HCL or its JSON form, into checked
// flows, and evaluates their expressions during runs.
//
// [Load] reads directories and files; [Restore] makes the same flows of what a run
// recorded. Everything wrong with the files is found by then and comes back as
// [hcl.Diagnostics], all of it at once, each with a stable rule ([RuleOf]), the
// place and what to do.
//
// # Two phases
//
// The values var.*, plugin.*, flow.name and the locals of a module are fixed when a
// flow is loaded; param.*, trigger.*, run.*, task.*, wait.*, group.*, each.* and
// error.* exist only in a run, and the locals of a flow may depend on them. A
// reference to a task, a wait or a group is an edge of the flow's graph.
// Expressions without run values are evaluated once, at load; the others through a
// [Scope], which converts each JSON value that they need once per run. What one
// evaluation computes is bounded, and so is what one load does.
//
// # JSON
//
// Values travel between tasks as JSON. An input that is nothing but a reference
// to a task's output, or to the trigger's payload, passes on the recorded bytes.
// Anything else goes through cty: numbers keep up to 512 bits, strings are
// normalized to Unicode NFC, the keys of objects come out sorted.
//
// # Tests
//
// [LoadTests] reads the tests of flows, too. They define what calls do
// ([Test.Mock]), what ends waits, and what must hold of the runs ([Test.Check]);
// making the runs is left to others.
//
// The package starts no goroutines. A [Set] and what it holds may be used
// concurrently; a [Scope] and the tests of a [Suite] may not.
//
// # Where to start reading
//
// Loading: [Load] (set.go) finds the files (source.go), and module.load (module.go) decodes
// them: variables and locals, plugins and limits, then the flows (flowdecoder.go, tasks.go,
// triggers.go, group.go), by the tables of blocks and arguments in language.go. What tasks may
// reach is in connection.go and grants.go, and [ReadOperator] (operator.go) reads what the
// settings of a host have of it. An expression is bound to what it refers to in reference.go
// and tried out in exprcontext.go; graph.go makes edges of its references, and infer.go and
// typing.go compare its type with what plugins take.
//
// Runs: admit.go decides about requests, [Scope] (scope.go, attributes.go) gives run
// values to expressions, and evaluate.go makes the inputs of tasks of them, by a template
// of known JSON (template.go, render.go) where that is cheaper. Tests of flows begin in
// testfile.go.
//
// The leaves are in flows/internal: ctyjson, diag, syntax, budget, funcs, jsonschema, lang
// and reachspec, each with its own duty in its package comment.
package flows
