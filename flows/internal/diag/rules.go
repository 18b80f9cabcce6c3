package diag

import "github.com/hashicorp/hcl/v2"

// Rule names what a diagnostic is about. Rules are stable: tools may select on
// them, the messages may change.
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
	RulePath             Rule = "path"              // a file or directory that cannot be read
	RuleValue            Rule = "value"             // a value that an argument cannot have
	RuleType             Rule = "type"              // not a type, or a value of the wrong one
	RuleExpression       Rule = "expression"        // an expression that cannot be evaluated
	RuleNull             Rule = "null"              // a value in a template that may be null
	RuleReference        Rule = "reference"         // not the form of a reference
	RuleUnknownRoot      Rule = "unknown-root"      // var, task, … is expected at the beginning
	RuleUnknownName      Rule = "unknown-name"      // no such task, wait, group, param, var, local, plugin, limit, connection, secret or flow
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
	RuleAllow            Rule = "allow"             // what is granted and the operator of the host does not allow
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
