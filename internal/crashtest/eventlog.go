package crashtest

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"
)

// event is an event as a follower receives it.
type event struct {
	ID        string          `json:"id"`
	Kind      string          `json:"kind"`
	Flow      string          `json:"flow"`
	Run       string          `json:"run"`
	At        time.Time       `json:"at"`
	Task      string          `json:"task"`
	Key       string          `json:"key"`
	Attempt   int             `json:"attempt"`
	State     string          `json:"state"`
	Record    json.RawMessage `json:"record"`
	Truncated bool            `json:"truncated"`

	place // from the id
}

// place is the position of an event in the journal.
type place struct {
	shard, revision, index int
	sum                    uint32 // of the commit
}

func parsePlace(id string) (p place, err error) {
	if _, err := fmt.Sscanf(id, "%d-%d-%d-%x", &p.shard, &p.revision, &p.index, &p.sum); err != nil {
		return p, fmt.Errorf("id %q of an event: %w", id, err)
	}
	return p, nil
}

// before reports whether a place comes before another one of its shard.
func (p place) before(other place) bool {
	return p.revision < other.revision || p.revision == other.revision && p.index < other.index
}

// runProgress is the state of a run according to its events so far.
type runProgress struct {
	submitted, finished bool
	cut                 bool           // its first events were missing after a reset
	started, ended      map[string]int // attempts by task and key
}

// addEvent adds an event and checks its order.
func (a *Archive) addEvent(e event) (err error) {
	a.Events++
	if e.place, err = parsePlace(e.ID); err != nil {
		return err
	}
	if last, ok := a.last[e.shard]; ok && !last.before(e.place) {
		a.broke(RuleOrder, e.Run, "event %s comes after revision %d, index %d", e.ID, last.revision, last.index)
	}
	s, task := a.progress(e.Run), e.task()
	switch {
	case s.finished:
		a.broke(RuleOrder, e.Run, "event %s, %s, comes after the run's end", e.ID, e.Kind)
	case s.cut:
	case e.Kind == "submitted" == s.submitted:
		a.broke(RuleOrder, e.Run, "event %s, %s: a run begins with one event submitted", e.ID, e.Kind)
	case e.starts() && e.Attempt != s.started[task]+1,
		e.Kind == "attempt_finished" && (e.Attempt != s.started[task] || e.Attempt != s.ended[task]+1):
		a.broke(RuleOrder, e.Run, "event %s, %s %d of %s: %d have begun, %d have ended", e.ID, e.Kind, e.Attempt, e.Task, s.started[task], s.ended[task])
	}
	if a.first == nil {
		a.first = &e.place
	}
	a.last[e.shard] = e.place
	return a.note(e)
}

// starts reports whether the event starts an attempt: a call, or the run of a sub-flow.
func (e *event) starts() bool { return e.Kind == "attempt_started" || e.Kind == "child_started" }

// restart handles a reset: events are missing, or the host took them back and sends
// them again. Ends from before the reset count until later ones replace them.
func (a *Archive) restart() {
	a.Resets++
	for _, end := range a.Ends {
		a.before[end.Run] = end
	}
	a.first, a.Ends, a.last, a.runs, a.Open = nil, nil, map[int]place{}, map[string]*runProgress{}, map[string]bool{}
}

// takeBack finds the ends from before a reset that did not come again although the
// events began before them: the journal has lost them. Each is a finding dated at the
// end itself, because a test may excuse the loss, but nothing that follows from it.
// Ends that the journal compacted regularly still count.
func (a *Archive) takeBack() {
	for _, run := range slices.Sorted(maps.Keys(a.before)) {
		end := a.before[run]
		if first := a.first; first != nil && first.shard == end.place.shard && first.before(end.place) {
			a.broken = append(a.broken, Finding{Rule: RuleOrder, Run: run, Answered: end.at, What: "the end of the run was published, and the journal has lost it"})
			continue
		}
		a.Ends = append(a.Ends, end)
	}
	clear(a.before)
}

func (a *Archive) progress(run string) *runProgress {
	if a.runs[run] == nil {
		a.runs[run] = &runProgress{started: map[string]int{}, ended: map[string]int{}, cut: a.Resets > 0}
	}
	return a.runs[run]
}

func (e *event) task() string { return e.Task + "/" + e.Key }

// note updates a run's progress.
func (a *Archive) note(e event) error {
	s := a.progress(e.Run)
	switch e.Kind {
	case "submitted":
		s.submitted = true
		a.Open[e.Run] = true
	case "attempt_started", "child_started":
		s.started[e.task()] = e.Attempt
	case "attempt_finished":
		s.ended[e.task()] = e.Attempt
	case "finished":
		s.finished = true
		delete(a.Open, e.Run)
		end, err := newEnd(e.Record)
		if err != nil {
			return fmt.Errorf("event %s: %w", e.ID, err)
		}
		end.place, end.at = e.place, e.At
		delete(a.before, e.Run)
		a.Ends = append(a.Ends, end)
	}
	return nil
}

func (a *Archive) broke(rule Rule, run, format string, args ...any) {
	a.broken = append(a.broken, Finding{Rule: rule, Run: run, What: fmt.Sprintf(format, args...)})
}
