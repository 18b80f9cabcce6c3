package flows

import (
	"slices"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"

	"github.com/flowhost/flowhost/flows/internal/budget"
	"github.com/flowhost/flowhost/flows/internal/diag"
	"github.com/flowhost/flowhost/flows/internal/jsonschema"
)

// impossible reports a comparison that is never true, whatever the run: of kinds
// that are never equal, or with a string that is not among those that there are. What
// depends on values that a deployment is given is left alone. It works, and so is no
// error.
func (t *typing) impossible(e *hclsyntax.BinaryOpExpr, left, right *jsonschema.Shape) {
	literal, other := e.RHS, e.LHS
	known, shown := right, left
	if !isLiteral(literal) {
		literal, other, known, shown = other, literal, left, right
	}
	if !isLiteral(literal) || t.deployed(other) || known.Present() == 0 || shown.Present() == 0 {
		return
	}
	switch both := known.Present() & shown.Present(); {
	case both == 0:
		t.warn(RuleType, e.Range(), "Never equal", "%s is %s, and never equal to %s. Bring both to one type, as tostring and tonumber do.", t.source(other), shown.Present(), known.Present())
	case both == jsonschema.String && shown.Present() == jsonschema.String && shown.Declared && known.Enum[0] != "" && !slices.Contains(shown.Enum, known.Enum[0]):
		t.warn(RuleValue, literal.Range(), "Never equal", "%s is never %q.%s", t.source(other), known.Enum[0], diag.DidYouMean(known.Enum[0], "", shown.Enum))
	}
}

// warn is [typing.report] of what works and can hardly be meant.
func (t *typing) warn(rule Rule, at hcl.Range, summary, detail string, args ...any) {
	if !t.lenient {
		t.diags.Add(rule, at, summary, detail, args...).Severity = hcl.DiagWarning
	}
}

// isLiteral reports whether a value is written out, other than null.
func isLiteral(e hcl.Expression) bool {
	switch e := budget.Bare(e).(type) {
	case *hclsyntax.LiteralValueExpr:
		return !e.Val.IsNull()
	case *hclsyntax.TemplateExpr:
		return e.IsStringLiteral()
	}
	return false
}

// deployed reports whether an expression depends on what differs between
// deployments of the same flow.
func (t *typing) deployed(e hcl.Expression) bool {
	return slices.ContainsFunc(e.Variables(), func(name hcl.Traversal) bool {
		return slices.Contains([]string{"var", "local", "each"}, name.RootName()) || t.names[name.RootName()] != nil
	})
}
