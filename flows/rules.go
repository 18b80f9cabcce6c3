package flows

import (
	"cmp"
	"fmt"
	"iter"
	"slices"

	"github.com/hashicorp/hcl/v2"
)

// Rule names what a diagnostic is about. Rules are stable: tools may select on
// them, the texts may change.
type Rule string

// Rules of diagnostics.
const (
	RuleSyntax           Rule = "syntax"            // not HCL or not JSON
	RuleStructure        Rule = "structure"         // labels or kinds of values that a block cannot have
	RuleLater            Rule = "later"             // a word of the language that this version does not know yet
	RuleUnknownArgument  Rule = "unknown-argument"  // no such argument in this block
	RuleUnknownBlock     Rule = "unknown-block"     // no such block in this block
	RuleBlockWithEquals  Rule = "block-with-equals" // task = { … } for task { … }
	RuleArgumentAsBlock  Rule = "argument-as-block" // input { … } for input = { … }
	RuleMissing          Rule = "missing"           // a required argument, block or attribute
	RuleConflict         Rule = "conflict"          // arguments that exclude each other
	RuleDuplicate        Rule = "duplicate"         // a name declared twice
	RuleName             Rule = "name"              // a name that cannot be used
	RulePath             Rule = "path"              // a file or folder that cannot be read
	RuleValue            Rule = "value"             // a value that an argument cannot have
	RuleType             Rule = "type"              // not a type, or a value of the wrong one
	RuleExpression       Rule = "expression"        // an expression that cannot be evaluated
	RuleReference        Rule = "reference"         // not the form of a reference
	RuleUnknownRoot      Rule = "unknown-root"      // var, task, … is expected at the beginning
	RuleUnknownName      Rule = "unknown-name"      // no such task, wait, group, param, var, local, plugin, limit or flow
	RuleUnknownAttribute Rule = "unknown-attribute" // no such attribute of a reference, or of a value whose type is known
	RuleRunValue         Rule = "run-value"         // a value of a run where none exists yet
	RuleMisplaced        Rule = "misplaced"         // a reference that this argument cannot use
	RuleEnvironment      Rule = "environment"       // ${HOME}
	RuleSelfReference    Rule = "self-reference"    // a task, wait, group or local that needs itself
	RuleCycle            Rule = "cycle"             // tasks, groups, locals or flows that need each other
	RuleFileFunction     Rule = "file-function"     // a file function where run values are used
	RulePlugin           Rule = "plugin"            // a module that cannot be used
	RuleDigest           Rule = "digest"            // a module that is not the one pinned
	RuleGrant            Rule = "grant"             // what cannot be granted, is not granted to the task's plugin, or is wanted by it
	RuleFunction         Rule = "function"          // no such function in the module, or none chosen
	RuleSchedule         Rule = "schedule"          // not a schedule
	RuleSubject          Rule = "subject"           // not a NATS subject
	RuleReserved         Rule = "reserved"          // a subject or stream of flowhost's or of the NATS server
	RuleVariable         Rule = "variable"          // a variable's value is missing, undeclared or invalid
	RuleAssertion        Rule = "assertion"         // what a test asserts does not hold
	RuleMore             Rule = "more"              // there are more problems than are shown
)

// Extra is what every diagnostic of this package carries in its Extra field.
type Extra struct {
	Rule    Rule
	wrapped any
}

// UnwrapDiagnosticExtra gives what hcl itself attached to the diagnostic.
func (e *Extra) UnwrapDiagnosticExtra() any { return e.wrapped }

// RuleOf is the rule of a diagnostic, empty for one of another package.
func RuleOf(d *hcl.Diagnostic) Rule {
	if e, ok := hcl.DiagnosticExtra[*Extra](d); ok {
		return e.Rule
	}
	return ""
}

// report collects diagnostics.
type report struct {
	found   hcl.Diagnostics
	guessed int // names that misspelt ones were compared with
}

// maxGuessed bounds what is done to find the nearest names.
const maxGuessed = 200_000

// mayCompare reports whether that many more names may be compared.
func (r *report) mayCompare(names int) bool {
	r.guessed += names
	return r.guessed <= maxGuessed
}

// guess is didYouMean where there may be many names and many misspelt ones.
func (r *report) guess(given, prefix string, names iter.Seq[string]) string {
	if !r.mayCompare(0) {
		return ""
	}
	all := slices.Collect(names)
	if !r.mayCompare(len(all)) {
		return ""
	}
	return didYouMean(given, prefix, all)
}

// add reports an error at a place, in a short summary and a detail that says
// what to do.
func (r *report) add(rule Rule, at hcl.Range, summary, detail string, args ...any) *hcl.Diagnostic {
	d := &hcl.Diagnostic{
		Severity: hcl.DiagError,
		Summary:  summary,
		Detail:   fmt.Sprintf(detail, args...),
		Subject:  &at,
		Extra:    &Extra{Rule: rule},
	}
	r.found = append(r.found, d)
	return d
}

// take adds the diagnostics of a library under one rule and tells whether there
// were errors among them.
func (r *report) take(rule Rule, diags hcl.Diagnostics) bool {
	for _, d := range diags {
		if RuleOf(d) == "" {
			copied := *d
			copied.Extra = &Extra{Rule: rule, wrapped: d.Extra}
			d = &copied
		}
		r.found = append(r.found, d)
	}
	return diags.HasErrors()
}

// duplicate reports a second declaration of a name.
func (r *report) duplicate(what, name string, at, first hcl.Range) {
	d := r.add(RuleDuplicate, at, "Duplicate "+what, "The %s %q is declared already, at %s. Rename one of the two.", what, name, place(first))
	d.Context = &at
}

// count is the number of diagnostics so far.
func (r *report) count() int { return len(r.found) }

// failed reports whether there are errors among the diagnostics after the first ones.
func (r *report) failed(first int) bool { return r.found[first:].HasErrors() }

// all gives the diagnostics in the order in which they were added.
func (r *report) all() hcl.Diagnostics { return r.found }

// drop removes diagnostics after the first ones.
func (r *report) drop(first int, unwanted func(*hcl.Diagnostic) bool) {
	kept := slices.DeleteFunc(r.found[first:], unwanted)
	r.found = r.found[:first+len(kept)]
}

// sorted gives the diagnostics by file and line, each once.
func (r *report) sorted() hcl.Diagnostics {
	type key struct {
		summary, detail string
		subject         hcl.Range
	}
	seen := map[key]bool{}
	var out hcl.Diagnostics
	for _, d := range r.found {
		k := key{d.Summary, d.Detail, subject(d)}
		if !seen[k] {
			seen[k] = true
			out = append(out, d)
		}
	}
	slices.SortStableFunc(out, func(a, b *hcl.Diagnostic) int {
		ra, rb := subject(a), subject(b)
		return cmp.Or(cmp.Compare(ra.Filename, rb.Filename), cmp.Compare(ra.Start.Byte, rb.Start.Byte))
	})
	if more := len(out) - maxShown; more > 0 {
		rest := report{}
		d := rest.add(RuleMore, subject(out[maxShown]), "More problems", "There are %d more problems from here on. They are not shown: correct those above first.", more)
		if !out[maxShown:].HasErrors() {
			d.Severity = hcl.DiagWarning
		}
		out = append(out[:maxShown], d)
	}
	return out
}

// maxShown bounds the diagnostics: each quotes lines of its file, which must be
// looked for.
const maxShown = 200

func subject(d *hcl.Diagnostic) hcl.Range {
	if d.Subject == nil {
		return hcl.Range{}
	}
	return *d.Subject
}
