package flows

import (
	"slices"

	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/function"
)

// Kinds of first arguments of functions that declare that they take anything, and
// then refuse what they cannot go through.
var (
	listFunctions   = []string{"alltrue", "anytrue", "chunklist", "coalescelist", "compact", "concat", "contains", "distinct", "element", "flatten", "index", "one", "reverse", "setproduct", "slice", "sum", "tolist", "toset"}
	objectFunctions = []string{"keys", "lookup", "merge", "tomap", "values"}
	listsOnly       = []string{"coalescelist", "concat", "merge", "setproduct"} // all arguments are as the first
)

// argument describes what a function takes in a place, nil when that cannot be said.
func (t *typing) argument(name string, f function.Function, i int) *shape {
	first := i == 0 || slices.Contains(listsOnly, name)
	switch {
	case f == (function.Function{}):
		return nil
	case name == "length":
		return ofKind(kindList | kindObject | kindString)
	case first && slices.Contains(listFunctions, name):
		return ofKind(kindList)
	case first && slices.Contains(objectFunctions, name):
		return ofKind(kindObject)
	}
	param := f.VarParam()
	if params := f.Params(); i < len(params) {
		param = &params[i]
	}
	if param == nil || param.Type == cty.DynamicPseudoType {
		return nil
	}
	return shapeFor(param.Type)
}

// checkArguments reports arguments that no call of the function takes.
func (t *typing) checkArguments(e *hclsyntax.FunctionCallExpr, args []*shape) {
	f := t.module.runFunctions[e.Name]
	for i, got := range args {
		want := t.argument(e.Name, f, i)
		if want == nil {
			continue
		}
		m := &matching{seen: map[[2]*shape]bool{}}
		if m.misfit(want, got, "") && m.want != nil {
			t.report(RuleType, e.Args[i].Range(), "Wrong type", "%s takes %s here, %s%s is %s.",
				e.Name, m.want.present(), t.source(e.Args[i]), m.below, m.got.present())
		}
	}
}
