package flows

import (
	"slices"

	"github.com/hashicorp/hcl/v2"
	"github.com/zclconf/go-cty/cty"

	"github.com/flowhost/flowhost/flows/internal/budget"
	"github.com/flowhost/flowhost/flows/internal/diag"
	"github.com/flowhost/flowhost/flows/internal/lang"
	"github.com/flowhost/flowhost/flows/internal/syntax"
)

// testContext binds the expressions of tests. These see the values of a module, and
// beside them what a call is given, or what runs have come to: they look at runs
// from outside.
type testContext struct {
	*exprContext
	roots     []string
	tested    *flowDecoder // of asserts
	called    *Task        // of the mock of one; nil for that of a plugin
	scheduled bool
}

// testExpr is an expression of a test.
type testExpr struct {
	hcl.Expression // as it is written
	counting       hcl.Expression
	argument       string
	constant       cty.Value // NilVal unless it is known at load
	single         bool      // refers to the one run
}

// bind checks an argument with unknown values in place of what runs bring. It is
// nil for one that is absent or wrong.
func (t *testContext) bind(a *hcl.Attribute) *testExpr {
	if a == nil {
		return nil
	}
	from := t.diags.Count()
	x := &testExpr{Expression: a.Expr, argument: a.Name, constant: cty.NilVal}
	for _, reference := range a.Expr.Variables() {
		t.reference(x, reference)
	}
	if t.diags.Failed(from) {
		return nil
	}
	x.counting = budget.Instrument(a.Expr)
	v, diags := t.module.budget.Eval(x.counting, t.context(t.unknowns()))
	if t.explain(&expression{Expression: x.counting, argument: a.Name}, diags) {
		return nil
	}
	if len(a.Expr.Variables()) == 0 && v.IsWhollyKnown() {
		x.constant = v
	}
	return x
}

// context is the module's values and some of tests.
func (s *exprContext) context(values map[string]cty.Value) *hcl.EvalContext {
	ctx := s.module.base.NewChild()
	ctx.Variables = values
	return ctx
}

// unknowns is what is known at load of what tests see.
func (t *testContext) unknowns() map[string]cty.Value {
	if t.tested == nil {
		return map[string]cty.Value{
			"input": cty.DynamicVal, "config": cty.DynamicVal, "attempt": cty.UnknownVal(cty.Number),
			"each": cty.ObjectVal(map[string]cty.Value{"key": cty.DynamicVal, "value": cty.DynamicVal, "index": cty.DynamicVal}),
		}
	}
	attributes := func(names []string) cty.Value {
		attrs := map[string]cty.Value{}
		for _, name := range names {
			attrs[name] = cty.DynamicVal
		}
		return cty.ObjectVal(attrs)
	}
	values := map[string]cty.Value{"run": attributes(testedRunAttributes), "runs": cty.DynamicVal}
	for _, of := range testedRoots {
		all := map[string]cty.Value{}
		for _, name := range of.names(t.tested) {
			all[name] = attributes(of.has)
		}
		values[of.name] = cty.ObjectVal(all)
	}
	return values
}

func (t *testContext) reference(x *testExpr, reference hcl.Traversal) {
	root, at := reference.RootName(), reference.SourceRange()
	switch {
	case root == "var" || root == "local":
		b := &binding{exprContext: t.exprContext, x: new(expression), usable: rootVar | rootLocal, at: lang.Load}
		b.reference(reference)
	case len(reference) == 1 && slices.Contains(typeNames, root):
		// The second argument of convert; anywhere else evaluation complains.
	case !slices.Contains(t.roots, root):
		hint := diag.DidYouMean(root, "", t.roots)
		if diag.Nearest(root, t.roots) == "" {
			hint = " References begin with " + diag.Join(t.roots, "or") + " here; a string needs quotes."
		}
		t.diags.Add(RuleUnknownRoot, at, "Unknown reference", "There is no %q.%s", root, hint)
	case root == "each":
		t.ofItem(reference)
	case root == "runs":
		t.ofRuns(reference)
	case root == "run" || testedRootOf(root) != nil:
		x.single = true
		t.ofTheRun(root, reference)
	}
}

// ofTheRun checks a reference to the one run of a test.
func (t *testContext) ofTheRun(root string, reference hcl.Traversal) {
	if t.scheduled {
		t.diags.Add(RuleMisplaced, reference.SourceRange(), "Several runs", "A schedule makes any number of runs: write runs[0].%s for one of them, or runs[*].… for all.", inRuns(root))
		return
	}
	if root == "run" {
		t.attribute("run", reference, 1, testedRunAttributes)
		return
	}
	t.settled(testedRootOf(root), root, reference, 1)
}

func inRuns(root string) string {
	if root == "run" {
		return "…"
	}
	return root + ".…"
}

// ofRuns checks a reference to a run by its place.
func (t *testContext) ofRuns(reference hcl.Traversal) {
	if len(reference) < 3 {
		return
	}
	has := testedRunAttributes
	for i := range testedRoots {
		of := &testedRoots[i]
		if name, _, ok := syntax.Step(reference, 2); ok && name == of.name {
			t.settled(of, "runs[…]."+of.name, reference, 3)
			return
		}
		has = append(slices.Clone(has), of.name)
	}
	t.attribute("runs[…]", reference, 2, has)
}

// testedRoot begins references to what a run is made of.
type testedRoot struct {
	name string
	has  []string
}

var testedRoots = []testedRoot{
	{"group", testedGroupAttributes}, {"task", testedTaskAttributes}, {"wait", testedWaitAttributes},
}

func testedRootOf(name string) *testedRoot {
	for i := range testedRoots {
		if testedRoots[i].name == name {
			return &testedRoots[i]
		}
	}
	return nil
}

// names are those that may follow.
func (r *testedRoot) names(d *flowDecoder) []string {
	if r.name == "group" {
		return keys(d.groups)
	}
	return d.leaves(rootWord(r.name))
}

// settled checks a name of the flow, and what follows it.
func (t *testContext) settled(r *testedRoot, of string, reference hcl.Traversal, i int) {
	name, at, ok := syntax.Step(reference, i)
	names := r.names(t.tested)
	switch {
	case !ok:
	case !slices.Contains(names, name):
		t.diags.Add(RuleUnknownName, at, "Unknown name", "Flow %q has no %s %q.%s", t.tested.flow.Name, r.name, name, diag.DidYouMean(name, of+".", names))
	default:
		t.attribute(of+"."+name, reference, i+1, r.has)
		if r.name == "task" {
			t.items(t.tested.tasks[name], of+"."+name, reference, i+1)
		}
	}
}

// items checks a reference to those of a fan-out.
func (t *testContext) items(task *Task, of string, reference hcl.Traversal, i int) {
	name, at, ok := syntax.Step(reference, i)
	switch {
	case !ok || name != "items" && name != "errors":
	case !task.FanOut:
		t.diags.Add(RuleUnknownAttribute, at, "Task without items", "Task %q has no for_each, so it has no %s.", task.Name, name)
	case name == "items":
		t.attribute(of+".items[…]", reference, i+2, testedItemAttributes)
	}
}

// ofItem checks a reference to the item that a call is for.
func (t *testContext) ofItem(reference hcl.Traversal) {
	if t.called != nil && !t.called.FanOut {
		t.diags.Add(RuleMisplaced, reference.SourceRange(), "Task without items", "Task %q has no for_each, so its calls are for no item: what they are given is input.", t.called.Name)
		return
	}
	t.attribute("each", reference, 1, rootWord("each").has)
}

func (t *testContext) attribute(of string, reference hcl.Traversal, i int, has []string) {
	if name, at, ok := syntax.Step(reference, i); ok && !slices.Contains(has, name) {
		t.diags.Add(RuleUnknownAttribute, at, "Unknown attribute", "%s has no attribute %q.%s", of, name, diag.DidYouMean(name, of+".", has))
	}
}

// evaluate gives the value of an expression once a run has brought the rest.
func (t *Test) evaluate(x *testExpr, values map[string]cty.Value) (cty.Value, *hcl.EvalContext, hcl.Diagnostics) {
	ctx := t.context.context(values)
	t.context.module.budget.Reset()
	v, diags := t.context.module.budget.Eval(x.counting, ctx)
	return v, ctx, diags
}
