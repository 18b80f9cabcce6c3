package flowsim

import (
	"slices"
	"time"

	"github.com/flowhost/flowhost/run"
)

// Line is what one task of a run did, or one item of it, in time since the run
// began.
type Line struct {
	Task, Key string
	Fan       bool // a task whose items have separate lines, after it
	State     run.State
	Code      string        // of its failure; empty for none
	Ready     time.Duration // when what it depends on had ended; of an item, when it began
	Began     bool
	From, To  time.Duration // of all attempts together; when it ended, for one that did not begin
	Critical  bool          // on the critical path; of an item, the one that its task ended with
	Attempts  []Attempt
}

// timeline lists all tasks in the order of the flow.
func timeline(r *run.Record, path []Step, ready map[string]time.Duration, attempts []Attempt) []Line {
	lines := make([]Line, 0, len(r.Tasks))
	critical := map[string]bool{}
	for _, s := range path {
		critical[s.Task] = true
	}
	made := map[run.TaskRef][]Attempt{}
	for _, a := range attempts {
		ref := run.TaskRef{Task: a.Task, Key: a.Key}
		made[ref] = append(made[ref], a)
	}
	since := func(at *time.Time, otherwise time.Duration) time.Duration {
		if at == nil {
			return otherwise
		}
		return at.Sub(*r.StartedAt)
	}
	for i := range r.Tasks {
		t := &r.Tasks[i]
		l := Line{Task: t.Task, Key: keyOf(t), Fan: t.Items != nil, State: t.State, Began: t.StartedAt != nil, To: since(t.FinishedAt, 0)}
		l.From = since(t.StartedAt, l.To)
		l.Ready = l.From
		if at, known := ready[t.Task]; known && t.Key == nil {
			l.Ready = at
		}
		if t.Error != nil {
			l.Code = t.Error.Code
		}
		l.Critical = critical[t.Task] && t.Key == nil
		l.Attempts = made[run.TaskRef{Task: l.Task, Key: l.Key}]
		lines = append(lines, l)
	}
	markItems(lines)
	return lines
}

// markItems puts the items on the critical path with which its fan-outs ended.
func markItems(lines []Line) {
	for _, whole := range lines {
		if !whole.Fan || !whole.Critical {
			continue
		}
		last := slices.IndexFunc(lines, func(l Line) bool { return l.Task == whole.Task && l.Key != "" && l.Began && l.To == whole.To })
		if last >= 0 {
			lines[last].Critical = true
		}
	}
}
