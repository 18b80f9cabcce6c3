package flows

import (
	"slices"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"

	"github.com/flowhost/flowhost/flows/internal/diag"
	"github.com/flowhost/flowhost/flows/internal/funcs"
	"github.com/flowhost/flowhost/flows/internal/lang"
)

// exprContext is where expressions are: a module's top level, or inside one
// of its flows.
type exprContext struct {
	module  *module
	diags   *diag.Report
	schema  *lang.Schema
	decoder *flowDecoder // nil at the top level
	part    Part         // of the flow; PartMain or empty outside of hooks

	// shared is set inside defaults, whose arguments hold for all tasks.
	shared bool

	// item is the task with for_each whose items the argument is evaluated for.
	item *Task
}

func (m *module) exprContext(w *lang.Schema) *exprContext {
	return &exprContext{module: m, diags: m.diags, schema: w}
}

func (s *exprContext) within(w *lang.Schema) *exprContext {
	inner := *s
	inner.schema = w
	return &inner
}

// decodeAt sorts out a block whose arguments are evaluated here.
func (s *exprContext) decodeAt(b *hcl.Block, w *lang.Schema) (*exprContext, *lang.Content) {
	return s.within(w), lang.Decode(s.diags, b.Body, w, b.DefRange)
}

// base holds the deploy-time values that expressions here see.
func (s *exprContext) base() *hcl.EvalContext {
	if s.decoder != nil {
		return s.decoder.base
	}
	return s.module.base
}

// evaluate gives the value of a deploy-time argument.
func (s *exprContext) evaluate(a *hcl.Attribute) (cty.Value, bool) {
	x, ok := s.bind(a.Expr, a.Name, s.schema.Argument(a.Name).Phase)
	if !ok {
		return cty.NilVal, false
	}
	return s.compute(x)
}

// usable is what an argument evaluated in that phase may refer to here.
func (s *exprContext) usable(at lang.Phase) roots {
	if s.module.settings {
		return 0
	}
	usable := usableIn(at, s.part == PartOnFailure || s.part == PartFinally)
	if at == lang.Retry && s.shared {
		usable &^= settledRoots
	}
	if s.item != nil && usable&rootRun != 0 {
		usable |= rootEach
	}
	if at == lang.Retry && s.decoder == nil {
		usable &^= rootParam | rootFlow
	}
	return usable
}

// compute gives the value of an expression as far as it can be known now: run
// values are unknown.
func (s *exprContext) compute(x *expression) (cty.Value, bool) {
	base := s.base()
	if x.roots&runRoots != 0 {
		base = s.runBase()
	}
	if s.module.budget.Spent() {
		return cty.DynamicVal, false // which is reported
	}
	v, diags := x.evaluate(base, (*loadValues)(s), s.module.budget)
	if s.explain(x, diags) {
		return cty.DynamicVal, false
	}
	return v, true
}

// runBase holds the deploy-time values that expressions here see in runs.
func (s *exprContext) runBase() *hcl.EvalContext {
	if s.decoder != nil {
		return s.decoder.flow.base
	}
	return s.module.runContext(cty.NilVal)
}

// late binds an argument that is evaluated after loading, and checks it with
// unknown values in place of what only runs know. It is nil when the argument
// is absent or wrong.
func (s *exprContext) late(a *hcl.Attribute) *expression {
	if a == nil {
		return nil
	}
	x, ok := s.bind(a.Expr, a.Name, s.schema.Argument(a.Name).Phase)
	if !ok {
		return nil
	}
	v, ok := s.compute(x)
	if !ok {
		return nil
	}
	x.settle(v)
	return x
}

// loadValues is what is known of run values while loading: their types at
// most.
type loadValues exprContext

func (f *loadValues) value(w ref) (cty.Value, error) {
	switch w.root.bit {
	case rootParam:
		return cty.UnknownVal(f.decoder.params[w.name].Type), nil
	case rootTask, rootGroup, rootWait:
		return unknown(w.attribute), nil
	case rootEach:
		return unknown("each." + w.name), nil
	}
	return unknown(w.name), nil
}

func (f *loadValues) single(w ref) (cty.Value, error) { return single(w, f) }

// unknown is an attribute of a root or a task of which only the type is known.
// Attributes of one name have one type.
func unknown(attribute string) cty.Value {
	switch attribute {
	case "payload", "output", "error", "errors", "details", "each.key", "each.value":
		return cty.DynamicVal
	case "headers":
		return cty.UnknownVal(cty.Map(cty.List(cty.String)))
	case "labels":
		return cty.UnknownVal(cty.Map(cty.String))
	case "attempt", "attempts", "duration", "each.index":
		return cty.UnknownVal(cty.Number)
	case "retryable":
		return cty.UnknownVal(cty.Bool)
	}
	return cty.UnknownVal(cty.String)
}

func (f *loadValues) local(l *local) (cty.Value, error) { return l.value, nil }

// explain reports what evaluating an expression gave, in terms of flow
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
