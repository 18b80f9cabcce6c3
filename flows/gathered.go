package flows

import (
	"slices"

	"github.com/hashicorp/hcl/v2"
	"github.com/zclconf/go-cty/cty"

	"github.com/flowhost/flowhost/flows/internal/jsonschema"
)

// This file describes, in the sense of [typing], what is put together of the
// outputs of several tasks: those of fan-outs and of groups.

// items describes the items of a fan-out.
type items struct {
	key, value *jsonschema.Shape
	kinds      jsonschema.Kinds // kindList or kindObject, which the output is too; both when it cannot be known
	names      []string         // the only keys of an object that there can be; nil for any
	all        bool             // all names are always there
}

// openItems are those of which nothing is known.
func openItems() *items {
	return &items{key: jsonschema.OfKind(jsonschema.String | jsonschema.Number), value: jsonschema.Any(), kinds: jsonschema.List | jsonschema.Object}
}

// itemTypes describes what a task is run for, and reports once what is wrong in it.
func (d *flowDecoder) itemTypes(t *Task) *items {
	if known := d.items[t]; known != nil {
		return known
	}
	d.items[t] = openItems() // until it is known: tasks may refer to each other in a circle, which is reported later
	if c := d.typed[t.Name]; c != nil && t.each != nil {
		outer, e := c.context.plain().typing(), t.each.Expression
		all := outer.infer(e)
		if got := all.Present(); got != 0 && got&(jsonschema.List|jsonschema.Object) == 0 && t.each.constant == cty.NilVal {
			outer.diags.Add(RuleType, e.Range(), "Wrong type", "\"for_each\" must be a list, a set or an object, %s is %s.", outer.source(e), got)
		}
		d.items[t] = itemsIn(all)
	}
	return d.items[t]
}

// itemsIn are the items of a value as [itemsOf] distinguishes them.
func itemsIn(all *jsonschema.Shape) *items {
	const names = jsonschema.String | jsonschema.Number | jsonschema.Bool
	known := openItems()
	switch item := all.Item(); {
	case all.Present() == jsonschema.Object:
		known.kinds, known.key, known.value = jsonschema.Object, jsonschema.OfKind(jsonschema.String), valueOf(all)
		if all.Closed && all.Rest == nil && len(all.Fields) > 0 {
			known.names, known.all = keys(all.Fields), len(all.Required) == len(all.Fields)
		}
	case all.Present() != jsonschema.List:
		return known
	case all.Sets == jsonschema.OnlySets && item.Present() != 0 && item.Present()&^names == 0:
		known.kinds, known.key, known.value = jsonschema.Object, jsonschema.OfKind(jsonschema.String), item
		if item.Present() == jsonschema.String {
			known.names = slices.Compact(slices.Sorted(slices.Values(item.Enum)))
		}
	case all.Sets == jsonschema.NoSets:
		known.kinds, known.key, known.value = jsonschema.List, &jsonschema.Shape{Kinds: jsonschema.Number, Integer: true}, item
	default:
		known.value = item
	}
	if known.names != nil {
		known.key = &jsonschema.Shape{Kinds: jsonschema.String, Enum: known.names}
	}
	return known
}

// valueOf is what the fields of an object have in common.
func valueOf(object *jsonschema.Shape) *jsonschema.Shape {
	var all []*jsonschema.Shape
	if object.Rest != nil {
		all = append(all, object.Rest)
	} else if !object.Closed || len(object.Fields) == 0 {
		return jsonschema.Any()
	}
	for _, name := range keys(object.Fields) {
		all = append(all, object.Fields[name])
	}
	return jsonschema.UnionOf(all)
}

// attribute is one of each.
func (i *items) attribute(name string) *jsonschema.Shape {
	switch name {
	case "key":
		return i.key
	case "value":
		return i.value
	}
	return &jsonschema.Shape{Kinds: jsonschema.Number, Integer: true}
}

// gathered describes the output of a fan-out whose items give one each.
func (i *items) gathered(one *jsonschema.Shape) *jsonschema.Shape {
	switch {
	case i.kinds == jsonschema.List:
		return jsonschema.ListOf(one)
	case i.kinds != jsonschema.Object:
		return jsonschema.Any()
	case i.names == nil:
		return &jsonschema.Shape{Kinds: jsonschema.Object, Rest: one}
	}
	s := &jsonschema.Shape{Kinds: jsonschema.Object, Fields: map[string]*jsonschema.Shape{}, Closed: true}
	for _, name := range i.names {
		s.Fields[name] = one
	}
	if i.all {
		s.Required = i.names
	}
	return s
}

// taskShape describes the output of a task.
func (d *flowDecoder) taskShape(t *Task) *jsonschema.Shape {
	c := d.typed[t.Name]
	switch {
	case c == nil:
		return jsonschema.Any()
	case !t.FanOut:
		return c.output
	case t.Continue:
		return d.itemTypes(t).gathered(jsonschema.Union(c.output, jsonschema.OfKind(jsonschema.Null)))
	}
	return d.itemTypes(t).gathered(c.output)
}

// groupShape describes the output of a group.
func (d *flowDecoder) groupShape(g *Group) *jsonschema.Shape {
	if known := d.groupShapes[g]; known != nil {
		return known
	}
	d.groupShapes[g] = jsonschema.Any() // until it is known, as in itemTypes
	out := &jsonschema.Shape{Kinds: jsonschema.Object, Fields: map[string]*jsonschema.Shape{}, Closed: d.clean}
	var winner *jsonschema.Shape
	for _, m := range g.Members {
		one := d.memberShape(m)
		out.Fields[m.Name()] = jsonschema.Union(one, jsonschema.OfKind(jsonschema.Null))
		out.Required = append(out.Required, m.Name())
		winner = jsonschema.UnionOfKnown(winner, one)
	}
	switch {
	case !g.FirstWins():
	case winner == nil || !d.clean:
		out = jsonschema.Any()
	default:
		out = winner
	}
	d.groupShapes[g] = out
	return out
}

func (d *flowDecoder) memberShape(m Member) *jsonschema.Shape {
	if m.Group != nil {
		return d.groupShape(m.Group)
	}
	return d.taskShape(m.Task)
}

// itemFailureShape describes an element of the errors of a fan-out.
func itemFailureShape(key *jsonschema.Shape) *jsonschema.Shape {
	s := failureShape()
	s.Kinds = jsonschema.Object
	s.Fields["key"] = key
	s.Required = append(slices.Clone(s.Required), "key")
	return s
}

// checkErrors reports a reference to the errors of a task that has no items: there
// are never any.
func (t *typing) checkErrors(root, name, attribute string, at hcl.Range) {
	if task := t.decoder.tasks[name]; root == "task" && attribute == "errors" && task != nil && !task.FanOut {
		t.report(RuleUnknownAttribute, at, "Task without items", "task.%s has no for_each, so there are no items that could fail. Its own failure is task.%s.error.", name, name)
	}
}
