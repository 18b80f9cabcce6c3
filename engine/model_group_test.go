package engine

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/flowhost/flowhost/flows"
)

// partPlan is the tree of a part of a flow: groups, and tasks as its leaves.
type partPlan struct {
	members []memberPlan
	tasks   []*taskPlan  // all leaves
	groups  []*groupPlan // each before those within it
}

// memberPlan is a task or a group.
type memberPlan struct {
	task  *taskPlan
	group *groupPlan
}

type groupPlan struct {
	name    string
	mode    flows.GroupMode
	max     int // max_parallel; 0 for none
	when    whenKind
	after   []string
	members []memberPlan
	parent  *groupPlan
	place   int // among the members of parent
}

func (m memberPlan) name() string {
	if m.group != nil {
		return m.group.name
	}
	return waitName(m.task.name)
}

func (m memberPlan) ref() string {
	if m.group != nil {
		return "group." + m.group.name
	}
	if m.task.wait != nil {
		return m.task.name
	}
	return "task." + m.task.name
}

// within are the group that a member is in, and its place there.
func (m memberPlan) within() (*groupPlan, int) {
	if m.group != nil {
		return m.group.parent, m.group.place
	}
	return m.task.group, m.task.place
}

// upstream is what a member waits for by itself.
func (m memberPlan) upstream() []string {
	if m.group != nil {
		return m.group.after
	}
	return m.task.upstream()
}

// leaves are the tasks of a member.
func (m memberPlan) leaves() []*taskPlan {
	if m.group == nil {
		return []*taskPlan{m.task}
	}
	var all []*taskPlan
	for _, inner := range m.group.members {
		all = append(all, inner.leaves()...)
	}
	return all
}

// inside reports whether a member is the group, or is in it.
func (m memberPlan) inside(g *groupPlan) bool {
	around, _ := m.within()
	if m.group == g {
		return true
	}
	for ; around != nil && around != g; around = around.parent {
	}
	return around == g
}

func (g *groupPlan) ordered() bool {
	return g.mode == flows.GroupSerial || g.mode == flows.GroupFirstSuccess
}

// find gives what a reference is to.
func (p *partPlan) find(ref string) memberPlan {
	for _, m := range p.all() {
		if m.ref() == ref {
			return m
		}
	}
	panic("nothing is called " + ref)
}

// all are the groups and the tasks.
func (p *partPlan) all() []memberPlan {
	var all []memberPlan
	for _, g := range p.groups {
		all = append(all, memberPlan{group: g})
	}
	for _, t := range p.tasks {
		all = append(all, memberPlan{task: t})
	}
	return all
}

func (p *partPlan) hcl(b *strings.Builder, module string) {
	for _, m := range p.members {
		m.hcl(b, module)
	}
}

func (m memberPlan) hcl(b *strings.Builder, module string) {
	if m.task != nil {
		m.task.hcl(b, module)
		return
	}
	g := m.group
	fmt.Fprintf(b, "  group %q {\n    mode = %q\n    after = [%s]\n", g.name, g.mode, strings.Join(g.after, ", "))
	if g.max > 0 {
		fmt.Fprintf(b, "    max_parallel = %d\n", g.max)
	}
	g.when.hcl(b, g.after)
	for _, inner := range g.members {
		inner.hcl(b, module)
	}
	b.WriteString("  }\n")
}

// randomPart makes a tree of n tasks. What they refer to may give a cycle.
func randomPart(rng *rand.Rand, prefix string, part flows.Part, n int) *partPlan {
	p := &partPlan{}
	names := make([]string, n)
	for i := range names {
		names[i] = fmt.Sprint(prefix, part, i)
	}
	order := slices.Clone(names) // of declaration
	if chance(rng, 4) {
		rng.Shuffle(n, func(i, j int) { order[i], order[j] = order[j], order[i] })
	}
	leaves := map[string]memberPlan{}
	for _, name := range names {
		leaves[name] = memberPlan{task: &taskPlan{name: name}}
	}
	p.members = p.plant(rng, prefix+string(part), order, leaves, nil)
	for i, name := range names {
		after, inputs := p.randomRefs(rng, leaves[name], i)
		t := randomTask(rng, name, part, after, inputs)
		t.group, t.place = leaves[name].task.group, leaves[name].task.place
		*leaves[name].task = *t
		p.tasks = append(p.tasks, leaves[name].task)
	}
	for _, g := range p.groups {
		g.after, _ = p.randomRefs(rng, memberPlan{group: g}, slices.Index(names, waitName(memberPlan{group: g}.leaves()[0].name)))
		g.when = randomWhen(rng, g.after)
	}
	return p
}

// plant makes members of the tasks with the given names, some of them in groups of
// their own.
func (p *partPlan) plant(rng *rand.Rand, in string, names []string, leaves map[string]memberPlan, around *groupPlan) []memberPlan {
	depth := 0
	for g := around; g != nil; g = g.parent {
		depth++
	}
	var members []memberPlan
	for len(names) > 0 {
		if depth == 3 || !chance(rng, 4) {
			m := leaves[names[0]]
			m.task.group, m.task.place = around, len(members)
			members, names = append(members, m), names[1:]
			continue
		}
		n := 1 + rng.IntN(min(len(names), 6))
		g := &groupPlan{name: fmt.Sprint("g_", in, len(p.groups)), parent: around, place: len(members)}
		g.mode = pick(rng, flows.GroupParallel, flows.GroupSerial, flows.GroupFirstSuccess, flows.GroupRace)
		if !g.ordered() && chance(rng, 2) {
			g.max = 1 + rng.IntN(3)
		}
		p.groups = append(p.groups, g)
		g.members = p.plant(rng, in, names[:n], leaves, g)
		members, names = append(members, memberPlan{group: g}), names[n:]
	}
	return members
}

// randomRefs are to tasks that come earlier and to groups, mostly earlier ones.
func (p *partPlan) randomRefs(rng *rand.Rand, m memberPlan, number int) (after, inputs []string) {
	refer := func(ref string, oneIn int) {
		switch rng.IntN(oneIn) {
		case 0:
			after = append(after, ref)
		case 1:
			inputs = append(inputs, ref)
		}
	}
	for _, t := range p.tasks[:min(number, len(p.tasks))] {
		if inner := (memberPlan{task: t}); m.group == nil || !inner.inside(m.group) {
			refer(inner.ref(), 8)
		}
	}
	for _, g := range p.groups {
		if m.inside(g) || m.group != nil && (memberPlan{group: g}).inside(m.group) {
			continue
		}
		if p.earlier(g, number) {
			refer("group."+g.name, 5)
		} else {
			refer("group."+g.name, 60)
		}
	}
	return after, inputs
}

// earlier reports whether all tasks of a group come before the one with a number.
func (p *partPlan) earlier(g *groupPlan, number int) bool {
	for _, t := range (memberPlan{group: g}).leaves() {
		if !slices.Contains(p.tasks[:min(number, len(p.tasks))], t) {
			return false
		}
	}
	return true
}

// cut takes the references of one task or group away, of those that a text names
// or that are in a group that it names.
func (p *partPlan) cut(rng *rand.Rand, text string) {
	words := strings.FieldsFunc(text, func(r rune) bool { return strings.ContainsRune(" ,:()", r) })
	named := slices.DeleteFunc(p.all(), func(m memberPlan) bool {
		said := slices.Contains(words, m.ref())
		for g, _ := m.within(); g != nil; g = g.parent {
			said = said || slices.Contains(words, "group."+g.name)
		}
		return len(m.upstream()) == 0 || !said
	})
	if len(named) == 0 {
		return
	}
	m := pick(rng, named...)
	if m.group != nil {
		m.group.after = nil
		if m.group.when == whenState {
			m.group.when = whenAlways
		}
		return
	}
	t := m.task
	t.after, t.inputs = nil, nil
	if t.when == whenState {
		t.when = whenAlways
	}
	if t.input == inputWhole || t.input == inputList {
		t.input = inputNone
	}
	if t.each != nil && t.each.kind == eachOutputs {
		t.each.kind = eachList
	}
}
