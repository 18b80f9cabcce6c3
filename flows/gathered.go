package flows

import (
	"slices"

	"github.com/hashicorp/hcl/v2"
	"github.com/zclconf/go-cty/cty"
)

// This file describes, in the sense of [typing], what is put together of the
// outputs of several tasks: those of fan-outs and of groups.

// items describes the items of a fan-out.
type items struct {
	key, value *shape
	kinds      kinds    // kindList or kindObject, which the output is too; both when it cannot be known
	names      []string // the only keys of an object that there can be; nil for any
	all        bool     // all names are always there
}

// openItems are those of which nothing is known.
func openItems() *items {
	return &items{key: ofKind(kindString | kindNumber), value: openShape(), kinds: kindList | kindObject}
}

// itemTypes describes what a task is run for, and reports once what is wrong in it.
func (d *draft) itemTypes(t *Task) *items {
	if known := d.items[t]; known != nil {
		return known
	}
	d.items[t] = openItems() // until it is known: tasks may refer to each other in a circle, which is reported later
	if c := d.typed[t.Name]; c != nil && t.each != nil {
		outer, e := c.site.plain().typing(), t.each.Expression
		all := outer.infer(e)
		if got := all.present(); got != 0 && got&(kindList|kindObject) == 0 && t.each.constant == cty.NilVal {
			outer.diags.Add(RuleType, e.Range(), "Wrong type", "\"for_each\" must be a list, a set or an object, %s is %s.", outer.source(e), got)
		}
		d.items[t] = itemsIn(all)
	}
	return d.items[t]
}

// itemsIn are the items of a value as [itemsOf] tells them apart.
func itemsIn(all *shape) *items {
	const names = kindString | kindNumber | kindBool
	known := openItems()
	switch item := all.item(); {
	case all.present() == kindObject:
		known.kinds, known.key, known.value = kindObject, ofKind(kindString), valueOf(all)
		if all.closed && all.rest == nil && len(all.fields) > 0 {
			known.names, known.all = keys(all.fields), len(all.required) == len(all.fields)
		}
	case all.present() != kindList:
		return known
	case all.sets == onlySets && item.present() != 0 && item.present()&^names == 0:
		known.kinds, known.key, known.value = kindObject, ofKind(kindString), item
		if item.present() == kindString {
			known.names = slices.Compact(slices.Sorted(slices.Values(item.words)))
		}
	case all.sets == noSets:
		known.kinds, known.key, known.value = kindList, &shape{kinds: kindNumber, whole: true}, item
	default:
		known.value = item
	}
	if known.names != nil {
		known.key = &shape{kinds: kindString, words: known.names}
	}
	return known
}

// valueOf is what the fields of an object have in common.
func valueOf(object *shape) *shape {
	var all []*shape
	if object.rest != nil {
		all = append(all, object.rest)
	} else if !object.closed || len(object.fields) == 0 {
		return openShape()
	}
	for _, name := range keys(object.fields) {
		all = append(all, object.fields[name])
	}
	return unionOf(all)
}

// attribute is one of each.
func (i *items) attribute(name string) *shape {
	switch name {
	case "key":
		return i.key
	case "value":
		return i.value
	}
	return &shape{kinds: kindNumber, whole: true}
}

// gathered describes the output of a fan-out whose items give one each.
func (i *items) gathered(one *shape) *shape {
	switch {
	case i.kinds == kindList:
		return listOf(one)
	case i.kinds != kindObject:
		return openShape()
	case i.names == nil:
		return &shape{kinds: kindObject, rest: one}
	}
	s := &shape{kinds: kindObject, fields: map[string]*shape{}, closed: true}
	for _, name := range i.names {
		s.fields[name] = one
	}
	if i.all {
		s.required = i.names
	}
	return s
}

// taskShape describes the output of a task.
func (d *draft) taskShape(t *Task) *shape {
	c := d.typed[t.Name]
	switch {
	case c == nil:
		return openShape()
	case !t.FanOut:
		return c.output
	case t.Continue:
		return d.itemTypes(t).gathered(union(c.output, ofKind(kindNull)))
	}
	return d.itemTypes(t).gathered(c.output)
}

// groupShape describes the output of a group.
func (d *draft) groupShape(g *Group) *shape {
	if known := d.groupShapes[g]; known != nil {
		return known
	}
	d.groupShapes[g] = openShape() // until it is known, as in itemTypes
	out := &shape{kinds: kindObject, fields: map[string]*shape{}, closed: d.clean}
	var winner *shape
	for _, m := range g.Members {
		one := d.memberShape(m)
		out.fields[m.Name()] = union(one, ofKind(kindNull))
		out.required = append(out.required, m.Name())
		winner = either(winner, one)
	}
	switch {
	case !g.FirstWins():
	case winner == nil || !d.clean:
		out = openShape()
	default:
		out = winner
	}
	d.groupShapes[g] = out
	return out
}

func (d *draft) memberShape(m Member) *shape {
	if m.Group != nil {
		return d.groupShape(m.Group)
	}
	return d.taskShape(m.Task)
}

// either is the union of two shapes that are complete: of two objects whose fields
// are all known, those of the union are too.
func either(a, b *shape) *shape {
	switch {
	case a == nil:
		return b
	case a.present() != kindObject || b.present() != kindObject || !a.closed || !b.closed:
		return union(a, b)
	}
	u := &shape{kinds: a.kinds | b.kinds, fields: map[string]*shape{}, closed: true}
	for name, field := range a.fields {
		u.fields[name] = field
	}
	for name, field := range b.fields {
		if u.fields[name] == nil {
			u.fields[name] = field
		} else {
			u.fields[name] = union(u.fields[name], field)
		}
	}
	for _, name := range a.required {
		if slices.Contains(b.required, name) {
			u.required = append(u.required, name)
		}
	}
	return u
}

// itemFailureShape describes an element of the errors of a fan-out.
func itemFailureShape(key *shape) *shape {
	s := failureShape()
	s.kinds = kindObject
	s.fields["key"] = key
	s.required = append(slices.Clone(s.required), "key")
	return s
}

// checkErrors reports a reference to the errors of a task that has no items: there
// are never any.
func (t *typing) checkErrors(root, name, attribute string, at hcl.Range) {
	if task := t.draft.tasks[name]; root == "task" && attribute == "errors" && task != nil && !task.FanOut {
		t.report(RuleUnknownAttribute, at, "Task without items", "task.%s has no for_each, so there are no items that could fail. Its own failure is task.%s.error.", name, name)
	}
}
