package flows

import (
	"slices"

	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/function"

	"github.com/flowhost/flowhost/flows/internal/jsonschema"
)

// Kinds of first arguments of functions that declare that they take anything, and
// then refuse what they cannot go through.
var (
	listFunctions   = []string{"alltrue", "anytrue", "chunklist", "coalescelist", "compact", "concat", "contains", "distinct", "element", "flatten", "index", "one", "reverse", "setproduct", "slice", "sum", "tolist", "toset"}
	objectFunctions = []string{"keys", "lookup", "merge", "tomap", "values"}
	listsOnly       = []string{"coalescelist", "concat", "merge", "setproduct"} // all arguments are as the first
)

// argument describes what a function takes in a place, nil when that is not known.
func (t *typing) argument(name string, f function.Function, i int) *jsonschema.Shape {
	first := i == 0 || slices.Contains(listsOnly, name)
	switch {
	case f == (function.Function{}):
		return nil
	case name == "length":
		return jsonschema.OfKind(jsonschema.List | jsonschema.Object | jsonschema.String)
	case first && slices.Contains(listFunctions, name):
		return jsonschema.OfKind(jsonschema.List)
	case first && slices.Contains(objectFunctions, name):
		return jsonschema.OfKind(jsonschema.Object)
	}
	param := f.VarParam()
	if params := f.Params(); i < len(params) {
		param = &params[i]
	}
	if param == nil || param.Type == cty.DynamicPseudoType {
		return nil
	}
	return jsonschema.ConvertibleTo(param.Type)
}

// checkArguments reports arguments that no call of the function takes.
func (t *typing) checkArguments(e *hclsyntax.FunctionCallExpr, args []*jsonschema.Shape) {
	f := t.module.runFunctions[e.Name]
	for i, got := range args {
		want := t.argument(e.Name, f, i)
		if want == nil {
			continue
		}
		if m := jsonschema.FindMismatch(want, got); m != nil {
			t.report(RuleType, e.Args[i].Range(), "Wrong type", "%s takes %s here, %s%s is %s.",
				e.Name, m.Want.Present(), t.source(e.Args[i]), m.Below, m.Got.Present())
		}
	}
}
