package flowsim

import (
	"slices"
	"time"

	"github.com/flowhost/flowhost/flows"
	"github.com/flowhost/flowhost/run"
)

// Step is a task on the critical path of a run: what decided when the run ended.
// It lasts from the end of the step before it to its own end, with all that the
// task waited for meanwhile: a worker, a slot of a limit or a group, the delay of a
// retry.
type Step struct {
	Task     string
	From, To time.Duration // since the run began
}

// criticalPath goes back from what ended last, each time to what ended last of
// what it depends on. It also returns when each task could have begun, as far as what
// it depends on goes.
func criticalPath(f *flows.Flow, r *run.Record) (steps []Step, ready map[string]time.Duration) {
	ended := map[string]*run.TaskRecord{}
	for i := range r.Tasks {
		if t := &r.Tasks[i]; t.Key == nil && t.FinishedAt != nil {
			ended[t.Task] = t
		}
	}
	ready = map[string]time.Duration{}
	begin := *r.StartedAt
	from := time.Duration(0) // where the section begins
	for _, s := range f.Sections {
		ran := slices.ContainsFunc(s.Tasks, func(t *flows.Task) bool { return ended[t.Name] != nil })
		if !ran {
			continue
		}
		w := walk{section: s, from: from, ends: make([]time.Duration, len(s.Nodes)), tasks: make([]*run.TaskRecord, len(s.Nodes))}
		for _, node := range s.Graph.Order() {
			w.tasks[node] = w.taskAt(node, ended)
			w.ends[node] = w.endOf(node, begin)
		}
		for node, t := range w.tasks {
			if t != nil {
				ready[t.Task] = w.since(w.last(s.Graph.Upstream(node)))
			}
		}
		part := w.back()
		steps = append(steps, part...)
		if len(part) > 0 {
			from = part[len(part)-1].To
		}
	}
	return steps, ready
}

// walk is the way through one part of a flow.
type walk struct {
	section *flows.Section
	from    time.Duration
	ends    []time.Duration   // by node
	tasks   []*run.TaskRecord // by node; nil for those of groups, and for what did not end
}

func (w *walk) taskAt(node int, ended map[string]*run.TaskRecord) *run.TaskRecord {
	if spec := w.section.Nodes[node].Task; spec != nil {
		return ended[spec.Name]
	}
	return nil
}

// endOf is when a node ended: that of a group with the last of what is before it.
func (w *walk) endOf(node int, begin time.Time) time.Duration {
	if t := w.tasks[node]; t != nil {
		return t.FinishedAt.Sub(begin)
	}
	end := w.from
	for _, up := range w.section.Graph.Upstream(node) {
		end = max(end, w.ends[up])
	}
	return end
}

// back gives the steps in the order in which they were taken.
func (w *walk) back() []Step {
	var steps []Step
	at := w.last(w.section.Graph.Order())
	for at >= 0 {
		before := w.last(w.section.Graph.Upstream(at))
		since := w.since(before)
		if t := w.tasks[at]; t != nil && (t.Attempts > 0 || w.ends[at] > since) {
			steps = append(steps, Step{Task: t.Task, From: since, To: w.ends[at]})
		}
		at = before
	}
	slices.Reverse(steps)
	return steps
}

// since is the end of what came before.
func (w *walk) since(before int) time.Duration {
	if before < 0 {
		return w.from
	}
	return w.ends[before]
}

// last is the node that ended last; of several the one whose end counts most, then
// the last of them. It is -1 for none.
func (w *walk) last(nodes []int) int {
	last := -1
	for _, node := range nodes {
		if last < 0 || w.ends[node] > w.ends[last] || w.ends[node] == w.ends[last] && w.weight(node) >= w.weight(last) {
			last = node
		}
	}
	return last
}

// weight puts what has decided something before what ended with it: a member of a
// race that was canceled, a task that was skipped.
func (w *walk) weight(node int) int {
	switch t := w.tasks[node]; {
	case t == nil: // of a group: it leads to what it waited for
		return 2
	case t.State == run.Succeeded || t.State == run.Failed:
		return 3
	case t.Attempts > 0:
		return 1
	}
	return 0
}
