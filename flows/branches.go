package flows

import (
	"github.com/hashicorp/hcl/v2/hclsyntax"

	"github.com/flowhost/flowhost/flows/internal/jsonschema"
)

// checkBranches compares both branches with what is wanted, each at its place. HCL
// brings them to one type, which makes other strings of plain values and leaves names
// and the kinds of the rest as they are.
func (t *typing) checkBranches(e *hclsyntax.ConditionalExpr, want *jsonschema.Shape, path string) {
	if v, ok := t.fixed(e); ok {
		t.compare(want, jsonschema.FromValue(v), spot{path: path, at: e.Range(), what: t.source(e)})
		return
	}
	t.operand(e.Condition, jsonschema.Bool|jsonschema.String)
	quiet := *t
	quiet.lenient = true
	yes, no := quiet.infer(e.TrueResult), quiet.infer(e.FalseResult)
	if !t.agree(e, yes, no) {
		return
	}
	same := yes.Present() == no.Present() && yes.Present()&^jsonschema.PlainKinds == 0 && oneKind(yes.Present())
	if !same && yes.Kinds != jsonschema.Null && no.Kinds != jsonschema.Null {
		want = jsonschema.Loosen(want)
	}
	branch := t.branch()
	branch.check(e.TrueResult, want, path)
	branch.check(e.FalseResult, want, path)
}

// branch looks at a branch of a conditional.
func (t *typing) branch() *typing {
	branch := *t
	branch.guarded = true
	return &branch
}

// agree reports branches of kinds that no type has in common: such a condition
// cannot be evaluated, whichever branch is taken.
func (t *typing) agree(e *hclsyntax.ConditionalExpr, yes, no *jsonschema.Shape) bool {
	a, b := yes.Present(), no.Present()
	plain := (a|b)&^jsonschema.PlainKinds == 0 && (a|b)&jsonschema.String != 0 // a string converts to either
	if a == 0 || b == 0 || a&b != 0 || plain {
		return true
	}
	t.report(RuleType, e.Range(), "Branches of different types", "Both branches must be of one type: one is %s, the other %s.", a, b)
	return false
}
