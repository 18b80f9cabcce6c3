package flows

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/convert"

	"github.com/flowhost/flowhost/flows/internal/budget"
	"github.com/flowhost/flowhost/flows/internal/ctyjson"
	"github.com/flowhost/flowhost/flows/internal/funcs"
	"github.com/flowhost/flowhost/flows/internal/lang"
	"github.com/flowhost/flowhost/flows/internal/syntax"
	"github.com/flowhost/flowhost/run"
)

// MaxItems is how many items a fan-out may have.
const MaxItems = 100_000

// fanOut reads what makes a task run for each of several items. The arguments of
// the task that are read afterwards may refer to the item.
func (s *exprContext) fanOut(t *Task, c *lang.Content) {
	if word, ok := s.word(c.Arg("on_error")); ok {
		t.Continue = word == onErrorContinue
	}
	if n, ok := s.whole(c.Arg("max_parallel"), 1, math.MaxInt32); ok {
		t.MaxParallel = int(n)
	}
	each := c.Arg("for_each")
	if each == nil {
		if limit := c.Arg("max_parallel"); limit != nil {
			s.diags.Add(RuleConflict, limit.NameRange, "Nothing is parallel here", "max_parallel bounds the items of for_each, and this task has none: leave it out, or put it on a group.")
		}
		return
	}
	t.FanOut, s.item = true, t
	t.each = s.plain().late(each)
	t.eachOf = s.plain().recordedOf(t.each)
	if err := s.canFanOut(t.each); errors.Is(err, errHidden) {
		s.diags.Add(RuleMisplaced, each.Expr.Range(), "Sensitive value where it would be shown", "%q %s.", each.Name, err)
	} else if err != nil {
		s.diags.Add(RuleType, each.Expr.Range(), "Wrong type", "%q %s.", each.Name, err)
	}
}

// ItemParams are the params of the flow that decide for which items the task runs, also
// through locals.
func (t *Task) ItemParams() []string {
	var names []string
	collect(t.each, func(w ref) {
		if w.root.bit == rootParam && !slices.Contains(names, w.name) {
			names = append(names, w.name)
		}
	})
	return names
}

// collect gives all run values that an expression names, also through locals.
func collect(x *expression, take func(ref)) {
	if x == nil {
		return
	}
	for _, w := range x.refs {
		take(w)
	}
	for _, l := range x.locals {
		collect(l.expr, take)
	}
}

// recordedOf is the value that an expression names, or a part of it; nil when it computes.
func (s *exprContext) recordedOf(x *expression) *reference {
	if x == nil || x.constant != cty.NilVal {
		return nil
	}
	t, ok := syntax.Native(x.Expression).(*hclsyntax.ScopeTraversalExpr)
	if !ok {
		return nil
	}
	if r := s.reference(t.Traversal); r != nil && r.recorded() && r.typ == cty.DynamicPseudoType {
		return r
	}
	return nil
}

// canFanOut returns what is known before a run to be wrong with the items.
func (s *exprContext) canFanOut(x *expression) error {
	switch {
	case x == nil:
		return nil
	case x.constant != cty.NilVal:
		_, err := itemsOf(x.constant)
		return err
	case s.module.budget.Spent():
		return nil // which is reported
	}
	if v, diags := x.evaluate(s.runBase(), markedValues{(*loadValues)(s)}, s.module.budget); !diags.HasErrors() && v.ContainsMarked() {
		return errHidden
	}
	return nil
}

// markedValues is what is known of run values while loading, and that params are
// sensitive.
type markedValues struct{ *loadValues }

func (g markedValues) value(w ref) (cty.Value, error) {
	v, err := g.loadValues.value(w)
	if w.root.bit == rootParam && g.decoder.params[w.name].Sensitive {
		v = v.Mark(funcs.Sensitive)
	}
	return v, err
}

func (g markedValues) single(w ref) (cty.Value, error) { return single(w, g) }

// plain is the same place outside of the items.
func (s *exprContext) plain() *exprContext {
	outer := *s
	outer.item = nil
	return &outer
}

// Items evaluates what the task is to be run for: a JSON list or object, see
// [run.TaskExpanded]. A failure is like those of [Task.When].
func (t *Task) Items(s *Scope) (json.RawMessage, *run.Failure) {
	if t.eachOf != nil && s.large(t.eachOf.ref) {
		return s.largeItems(t)
	}
	v, failure := s.evaluate(t.each, s)
	if failure != nil {
		return nil, failure
	}
	items, err := itemsOf(v)
	if err != nil {
		return nil, reject(t.each.Range(), t.each.argument+" "+err.Error())
	}
	return items, nil
}

// largeItems are those of a value that is too large to be decoded as a whole.
func (s *Scope) largeItems(t *Task) (json.RawMessage, *run.Failure) {
	recorded := s.recorded(t.eachOf.ref)
	if size, stored := run.StoredSize(recorded); stored {
		return nil, reject(t.each.Range(), fmt.Sprintf("%s: %s is %v", t.each.argument, t.eachOf.ref, &storedError{size}))
	}
	defer s.end(s.begin())
	items, err := ctyjson.Extract(nil, recorded, t.eachOf.steps, s.budget)
	if err == nil {
		err = countItems(items)
	}
	if err != nil {
		return nil, reject(t.each.Range(), t.each.argument+" "+err.Error())
	}
	return items, nil
}

// countItems checks items as [itemsOf] does.
func countItems(items json.RawMessage) error {
	n := 0
	err := ctyjson.Each(items, budget.New(), func(name, _ []byte) error {
		if n++; name != nil && len(name) == 0 {
			return errNameless
		}
		return nil
	})
	if errors.Is(err, ctyjson.ErrNoParts) {
		return errors.New("must be a list, a set or an object")
	}
	if err == nil && n > MaxItems {
		err = fmt.Errorf("has %d items, and %d are the most", n, MaxItems)
	}
	return err
}

var errNameless = errors.New("has an item without a name: its key is empty")

var errHidden = errors.New("is sensitive, and the keys of its items would be shown")

// itemsOf gives the items of a value in their recorded form. A set of strings,
// numbers or bools is recorded as an object: its items are their own keys.
func itemsOf(v cty.Value) (json.RawMessage, error) {
	switch t := v.Type(); {
	case v.ContainsMarked():
		return nil, errHidden
	case v.IsNull() || !v.IsKnown() || !v.CanIterateElements():
		return nil, fmt.Errorf("must be a list, a set or an object%s", misfit(v, nil))
	case v.LengthInt() > MaxItems:
		return nil, fmt.Errorf("has %d items, and %d are the most", v.LengthInt(), MaxItems)
	case t.IsSetType() && (t.ElementType().IsPrimitiveType() || v.LengthInt() == 0):
		return keyed(v)
	case t.IsMapType() || t.IsObjectType():
		if all := v.AsValueMap(); all[""] != cty.NilVal {
			return nil, errNameless
		}
	}
	return encodeJSON(v)
}

func keyed(set cty.Value) (json.RawMessage, error) {
	items := make(map[string]cty.Value, set.LengthInt())
	for it := set.ElementIterator(); it.Next(); {
		_, item := it.Element()
		key, err := convert.Convert(item, cty.String)
		if err != nil || key.IsNull() || key.AsString() == "" {
			return nil, errors.New("has an item that is no name: null or empty")
		}
		items[key.AsString()] = item
	}
	return encodeJSON(cty.ObjectVal(items))
}

// Each makes an item of a fan-out visible to expressions as each, until it is
// called again; nil takes it away.
func (s *Scope) Each(item *run.Item) { s.item = item }

func (s *Scope) itemValue(name string) (cty.Value, error) {
	switch {
	case s.item == nil: // it is not evaluated for one
		return cty.NullVal(cty.DynamicPseudoType), nil
	case name == "index":
		return cty.NumberIntVal(int64(s.item.Index)), nil
	case name == "key":
		return itemKey(s.item), nil
	}
	v, err := s.decodeOrNull(s.item.Value)
	if err != nil {
		err = fmt.Errorf("each.value is %w", err)
	}
	return v, err
}

// itemKey is the name of an item, or its place in a list.
func itemKey(i *run.Item) cty.Value {
	if i.Named {
		return cty.StringVal(i.Key)
	}
	return cty.NumberIntVal(int64(i.Index))
}

// itemFailure is an element of the errors of a fan-out.
func itemFailure(i *run.Item, f *run.Failure, open opener) (cty.Value, error) {
	attrs, err := failureValues(f, open)
	if err != nil {
		return cty.NilVal, err
	}
	attrs["key"] = itemKey(i)
	return cty.ObjectVal(attrs), nil
}

// itemErrors are the ends of the items that did not succeed, in their order.
func (s *Scope) itemErrors(t *run.TaskRun) (cty.Value, error) {
	if t.Items == nil { // it ended before it had any
		return cty.EmptyTupleVal, nil
	}
	all := []cty.Value{}
	items, err := run.Items(t.Items)
	if err != nil {
		return cty.EmptyTupleVal, err
	}
	for _, item := range items {
		state := s.run.Task(run.TaskRef{Task: t.Task, Key: item.Key})
		if state == nil || state.Failure == nil {
			continue
		}
		failed, err := itemFailure(&item, state.Failure, s.decodeOrNull)
		if err != nil {
			return cty.NilVal, err
		}
		all = append(all, failed)
	}
	return cty.TupleVal(all), nil
}
