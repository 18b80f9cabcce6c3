package syntax

import (
	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"
)

// Native gives what an expression is in HCL's own syntax, without what makes no
// difference to its value: parentheses, and a template that holds nothing else. A
// compound value of the JSON syntax is left as it is.
func Native(e hcl.Expression) hcl.Expression {
	for {
		switch x := e.(type) {
		case *hclsyntax.ParenthesesExpr:
			e = x.Expression
		case *hclsyntax.TemplateWrapExpr:
			e = x.Wrapped
		case hclsyntax.Expression:
			return e
		default:
			template, ok := TemplateOf(e)
			if !ok {
				return e
			}
			e = template
		}
	}
}

// TemplateOf parses a string of the JSON syntax. Without a context it evaluates to
// what is written.
func TemplateOf(e hcl.Expression) (hcl.Expression, bool) {
	text, diags := e.Value(nil)
	if diags.HasErrors() || text.Type() != cty.String || text.IsNull() {
		return nil, false
	}
	at := e.Range()
	start := at.Start
	start.Column++ // behind the quotation mark
	start.Byte++
	parsed, diags := hclsyntax.ParseTemplate([]byte(text.AsString()), at.Filename, start)
	return parsed, !diags.HasErrors()
}

// Step is one step of a traversal as a name, however it is written: .a or ["a"].
func Step(t hcl.Traversal, i int) (string, hcl.Range, bool) {
	if i <= 0 || i >= len(t) {
		return "", hcl.Range{}, false
	}
	return StepName(t[i])
}

// StepName is the name of a step of a traversal.
func StepName(t hcl.Traverser) (string, hcl.Range, bool) {
	switch s := t.(type) {
	case hcl.TraverseAttr:
		return s.Name, s.SrcRange, true
	case hcl.TraverseIndex:
		if s.Key.Type() == cty.String && s.Key.IsKnown() && !s.Key.IsNull() {
			return s.Key.AsString(), s.SrcRange, true
		}
	}
	return "", hcl.Range{}, false
}

// Reference is the reference that an expression is, without being evaluated. In the JSON
// syntax that is a string, "secret.NAME" or "${secret.NAME}".
func Reference(e hcl.Expression) (hcl.Traversal, bool) {
	t, diags := hcl.AbsTraversalForExpr(e)
	if diags.HasErrors() {
		t, diags = hcl.AbsTraversalForExpr(Native(e))
	}
	return t, !diags.HasErrors()
}
