package flows

import (
	"time"

	"github.com/flowhost/flowhost/dag"
)

// Part is which part of a flow a section is.
type Part string

// The parts of a flow, in the order in which they run.
const (
	PartMain      Part = "main"
	PartOnFailure Part = "on_failure" // after the main tasks, when the run has failed or its time was up
	PartOnSuccess Part = "on_success" // after the main tasks, when all went well
	PartFinally   Part = "finally"    // after all of these, also when the run was canceled
)

// DefaultFinally is how long the tasks of finally may take together, unless
// stated: they run after everything else, also when nobody waits any more.
const DefaultFinally = 5 * time.Minute

// Section is the tasks of one part of a flow.
type Section struct {
	Part    Part
	Tasks   []*Task       // also those in groups
	Groups  []*Group      // each before those within it
	Nodes   []Node        // those of the tasks, then the beginning and the end of each group
	Graph   *dag.Graph    // of Nodes
	Timeout time.Duration // of all tasks together, for PartFinally
}

// Node is a task, or the beginning or the end of a group, in the graph of a
// section.
type Node struct {
	Task   *Task  // nil for those of a group
	Group  *Group // whose beginning or end it is; nil for a task
	End    bool
	Parent *Group // in which the task or the group is; nil for none
	Place  int    // among the members of Parent

	// Needs are the nodes that decide whether the task runs, or the group begins.
	Needs []Need
}

// Need is a node on whose end another one depends.
type Need struct {
	Node int

	// Before is set for the one before it in a serial group, to which nothing
	// refers: that it was skipped decides nothing.
	Before bool
}

// Exit is the node at which a member of a group ends.
func (m Member) Exit() int {
	if m.Group != nil {
		return m.Group.End
	}
	return m.Task.Node
}

// entry is the node at which it begins.
func (m Member) entry() int {
	if m.Group != nil {
		return m.Group.Begin
	}
	return m.Task.Node
}

// Section is a part of the flow, nil when the flow has none. There is always a
// main part.
func (f *Flow) Section(part Part) *Section {
	for _, s := range f.Sections {
		if s.Part == part {
			return s
		}
	}
	return nil
}

// AllTasks are the tasks of all parts, part by part.
func (f *Flow) AllTasks() []*Task {
	var all []*Task
	for _, s := range f.Sections {
		all = append(all, s.Tasks...)
	}
	return all
}

// sees reports whether the tasks of a part may refer to those of another: only to
// their own and those of parts that have run before.
func (p Part) sees(other Part) bool {
	switch other {
	case PartMain:
		return true
	case PartOnFailure, PartOnSuccess:
		return p == other || p == PartFinally
	}
	return p == other
}
