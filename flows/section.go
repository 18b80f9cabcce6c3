package flows

import (
	"time"

	"github.com/flowhost/flowhost/dag"
)

// Part says which part of a flow a section is.
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
	Tasks   []*Task
	Graph   *dag.Graph    // node i is Tasks[i]
	Timeout time.Duration // of all tasks together, for PartFinally
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
// those of their own and of parts that have run before.
func (p Part) sees(other Part) bool {
	switch other {
	case PartMain:
		return true
	case PartOnFailure, PartOnSuccess:
		return p == other || p == PartFinally
	}
	return p == other
}
