package flows

import (
	"slices"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"

	"github.com/flowhost/flowhost/flows/internal/diag"
	"github.com/flowhost/flowhost/flows/internal/funcs"
)

// explain reports what evaluating an expression gave, in words that fit flow
// files, and reports whether there were errors.
func (s *exprContext) explain(x *expression, diags hcl.Diagnostics) bool {
	for _, d := range diags {
		if call, ok := hcl.DiagnosticExtra[hclsyntax.FunctionCallUnknownDiagExtra](d); ok && call.CalledFunctionName() != "" {
			s.unknownFunction(x, call.CalledFunctionName(), diag.Subject(d))
			continue
		}
		s.diags.Take(RuleExpression, hcl.Diagnostics{d})
	}
	return diags.HasErrors()
}

func (s *exprContext) unknownFunction(x *expression, name string, at hcl.Range) {
	switch {
	case slices.Contains(fileFunctions, name):
		s.diags.Add(RuleFileFunction, at, "File function with run values",
			"%s reads when the flow is loaded, and this expression also uses values of a run (%s). Put the call into a local, such as text = %s(…), and use local.text here.",
			name, (x.roots & runRoots).names(), name)
	case funcs.Refused[name] != "":
		s.diags.Add(RuleExpression, at, "No function "+name, "%s", funcs.Refused[name])
	default:
		names := append(keys(s.module.runFunctions), fileFunctions...)
		s.diags.Add(RuleExpression, at, "Unknown function", "There is no function %q.%s", name, diag.DidYouMean(name, "", names))
	}
}
