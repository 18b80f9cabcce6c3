package flows

import (
	"cmp"
	"math"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"

	"github.com/flowhost/flowhost/flows/internal/diag"
	"github.com/flowhost/flowhost/flows/internal/lang"
	"github.com/flowhost/flowhost/run"
)

// GroupMode is how the members of a group follow each other.
type GroupMode string

// Modes of groups.
const (
	GroupParallel     GroupMode = "parallel"      // all at once, as far as what they refer to lets them
	GroupSerial       GroupMode = "serial"        // one after the other; none after one that did not succeed
	GroupFirstSuccess GroupMode = "first_success" // one after the other, up to the first that succeeds
	GroupRace         GroupMode = "race"          // all at once, up to the first that succeeds
)

// Group is members that run as one: its state follows theirs.
type Group struct {
	Name        string
	Mode        GroupMode
	MaxParallel int       // tasks of it that are under way at once; 0 for no bound
	Range       hcl.Range // of the block's header
	Members     []Member  // declared order
	Parent      *Group    // nil for a group of a part of the flow itself
	Begin, End  int       // its nodes in the section's graph

	part    Part
	number  int         // among all tasks and groups of the flow, from 0
	output  ref         // group.NAME.output
	when    *expression // nil: always
	after   []dependency
	content *lang.Content
	context *exprContext
}

// Member is a task, a wait or a group within a group.
type Member struct {
	Task  *Task
	Group *Group
}

// Name is that of the task, the wait or the group. Those of a group are all
// different.
func (m Member) Name() string {
	if m.Group != nil {
		return m.Group.Name
	}
	return strings.TrimPrefix(m.Task.Name, WaitPrefix)
}

// output is the reference to what the task, the wait or the group gives.
func (m Member) output() ref {
	if m.Group != nil {
		return m.Group.output
	}
	return m.Task.output
}

// At is the place of the group's block, "orders.hcl:14".
func (g *Group) At() string { return diag.Place(g.Range) }

// ordered reports whether the members come one after the other.
func (g *Group) ordered() bool { return g.Mode == GroupSerial || g.Mode == GroupFirstSuccess }

// FirstWins reports whether the group succeeds with the first member that does.
func (g *Group) FirstWins() bool { return g.Mode == GroupFirstSuccess || g.Mode == GroupRace }

// Leaves are the tasks of the group and of the groups within it.
func (g *Group) Leaves() []*Task {
	var all []*Task
	for _, m := range g.Members {
		if m.Group != nil {
			all = append(all, m.Group.Leaves()...)
		} else {
			all = append(all, m.Task)
		}
	}
	return all
}

// member is the reference to what the member of that name gives, "task.a.output",
// or "".
func (g *Group) member(name string) string {
	for _, m := range g.Members {
		if m.Name() != name {
			continue
		}
		w := m.output()
		return w.root.name + "." + w.name + "." + w.attribute
	}
	return ""
}

// depth is the number of groups around it, itself included.
func (g *Group) depth() int {
	n := 0
	for ; g != nil; g = g.Parent {
		n++
	}
	return n
}

// holds reports whether a group is this one or within it.
func (g *Group) holds(inner *Group) bool {
	for ; inner != nil; inner = inner.Parent {
		if inner == g {
			return true
		}
	}
	return false
}

// When reports whether the group's condition lets it begin. A failure is like those
// of [Task.When].
func (g *Group) When(s *Scope) (bool, *run.Failure) {
	if g.when == nil {
		return true, nil
	}
	return s.truth(g.when, s)
}

// memberBlocks are the kinds of blocks that sections and groups are made of.
var memberBlocks = []string{"task", "wait", "group"}

// declareMembers notes the tasks, waits and groups of a section or a group, in
// declared order, and gives the number of their blocks.
func (d *flowDecoder) declareMembers(c *lang.Content, s *Section, in *Group) int {
	var blocks []*hcl.Block
	for _, kind := range memberBlocks {
		blocks = append(blocks, c.Blocks[kind]...)
	}
	slices.SortStableFunc(blocks, func(a, b *hcl.Block) int {
		return cmp.Or(cmp.Compare(a.DefRange.Filename, b.DefRange.Filename), cmp.Compare(a.DefRange.Start.Byte, b.DefRange.Start.Byte))
	})
	for _, b := range blocks {
		m := Member{}
		switch b.Type {
		case "group":
			m.Group = d.declareGroup(b, s, in)
		case "wait":
			m.Task = d.declareWait(b, s, in)
		default:
			m.Task = d.declareTask(b, s, in)
		}
		if in != nil && m != (Member{}) {
			in.Members = append(in.Members, m)
		}
	}
	return len(blocks)
}

// maxGroups bounds how deep groups may be nested.
const maxGroups = 32

// declareGroup notes a group and what it holds. The members of one that cannot be
// named are noted too: others may refer to them.
func (d *flowDecoder) declareGroup(b *hcl.Block, s *Section, in *Group) *Group {
	name, ok := d.declareName(b)
	g := &Group{Name: name, Mode: GroupParallel, Range: b.DefRange, Parent: in, part: s.Part}
	if ok {
		g.output = d.settles("group."+name, rootWord("group"), name)
		g.number = g.output.number
		d.groups[name] = g
		s.Groups = append(s.Groups, g)
	}
	if g.depth() == maxGroups+1 {
		d.context.diags.Add(RuleStructure, b.DefRange, "Groups nested too deeply", "Groups may be nested %d deep. Make what is in this one a separate flow.", maxGroups)
	}
	inner := *d.context
	inner.part = s.Part
	g.context, g.content = inner.decodeAt(b, groupSchema)
	if declared := d.declareMembers(g.content, s, g); declared == 0 {
		d.context.diags.Add(RuleMissing, b.DefRange, "Group without members", "A group needs at least one %s block.", diag.Join(memberBlocks, "or"))
	}
	if !ok {
		return nil
	}
	return g
}

// decodeGroups reads the arguments of the groups: they may refer to all that is
// declared.
func (d *flowDecoder) decodeGroups() {
	for _, s := range d.flow.Sections {
		for _, g := range s.Groups {
			g.context.decodeGroup(g)
		}
	}
}

func (s *exprContext) decodeGroup(g *Group) {
	c := g.content
	if word, ok := s.word(c.Arg("mode")); ok {
		g.Mode = GroupMode(word)
	}
	if n, ok := s.whole(c.Arg("max_parallel"), 1, math.MaxInt32); ok {
		g.MaxParallel = int(n)
	}
	if g.ordered() && g.MaxParallel > 0 {
		s.diags.Add(RuleConflict, c.Arg("max_parallel").NameRange, "Nothing is parallel here",
			"The members of a group of mode %q come one after the other: leave max_parallel out.", g.Mode)
	}
	g.when = s.condition(c.Arg("when"))
	g.after = s.after(c.Arg("after"))
	g.content, g.context = nil, nil
}
