package flows

import (
	"github.com/hashicorp/hcl/v2"
	"github.com/zclconf/go-cty/cty"
)

// site is a place where expressions stand: a module's top level, or inside one
// of its flows.
type site struct {
	*module
	words *words
	draft *draft // nil at the top level
	hook  bool   // inside on_failure
}

func (m *module) site(w *words) *site { return &site{module: m, words: w} }

func (s *site) within(w *words) *site {
	inner := *s
	inner.words = w
	return &inner
}

// decodeAt sorts out a block whose arguments are evaluated here.
func (s *site) decodeAt(b *hcl.Block, w *words) (*site, *content) {
	return s.within(w), s.decode(b.Body, w, b.DefRange)
}

// base holds the deploy-time values that expressions here see.
func (s *site) base() *hcl.EvalContext {
	if s.draft != nil {
		return s.draft.base
	}
	return s.module.base
}

// evaluate gives the value of a deploy-time argument.
func (s *site) evaluate(a *hcl.Attribute) (cty.Value, bool) {
	x, ok := s.bind(a.Expr, a.Name, s.words.argument(a.Name).at)
	if !ok {
		return cty.NilVal, false
	}
	return s.compute(x)
}

// compute gives the value of an expression as far as it can be known now: run
// values are unknown.
func (s *site) compute(x *expression) (cty.Value, bool) {
	base := s.base()
	if x.roots&runRoots != 0 {
		base = s.draft.flow.base
	}
	v, diags := x.evaluate(base, (*foreseen)(s))
	if s.explain(x, diags) {
		return cty.DynamicVal, false
	}
	return v, true
}

// late binds an argument that is evaluated after loading, and checks it with
// unknown values in place of what only runs know. It is nil when the argument
// is absent or wrong.
func (s *site) late(a *hcl.Attribute) *expression {
	if a == nil {
		return nil
	}
	x, ok := s.bind(a.Expr, a.Name, s.words.argument(a.Name).at)
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

// foreseen is what a site knows of run values while loading: their types at
// most.
type foreseen site

func (f *foreseen) root(name string) (cty.Value, error) {
	switch name {
	case "param":
		params := map[string]cty.Value{}
		for name, p := range f.draft.params {
			params[name] = cty.UnknownVal(p.Type)
		}
		return cty.ObjectVal(params), nil
	case "trigger":
		return cty.ObjectVal(map[string]cty.Value{
			"kind": cty.UnknownVal(cty.String), "name": cty.UnknownVal(cty.String),
			"subject": cty.UnknownVal(cty.String), "time": cty.UnknownVal(cty.String),
			"headers": cty.UnknownVal(cty.Map(cty.List(cty.String))), "payload": cty.DynamicVal,
		}), nil
	case "run":
		return cty.ObjectVal(map[string]cty.Value{
			"id": cty.UnknownVal(cty.String), "flow": cty.UnknownVal(cty.String),
			"scheduled_at": cty.UnknownVal(cty.String), "started_at": cty.UnknownVal(cty.String),
			"labels": cty.UnknownVal(cty.Map(cty.String)),
		}), nil
	}
	return cty.ObjectVal(map[string]cty.Value{ // error
		"task": cty.UnknownVal(cty.String), "outcome": cty.UnknownVal(cty.String), "code": cty.UnknownVal(cty.String),
		"message": cty.UnknownVal(cty.String), "attempt": cty.UnknownVal(cty.Number),
	}), nil
}

func (f *foreseen) task(string) (cty.Value, error) {
	return cty.ObjectVal(map[string]cty.Value{
		"output": cty.DynamicVal, "error": cty.DynamicVal, "state": cty.UnknownVal(cty.String),
		"attempts": cty.UnknownVal(cty.Number), "duration": cty.UnknownVal(cty.Number),
	}), nil
}

func (f *foreseen) local(l *local) (cty.Value, error) { return l.value, nil }
