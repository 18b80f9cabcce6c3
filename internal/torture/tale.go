package torture

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"
)

// event is one of the stream FH_EVENTS.
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

	place // that the id names
}

// place is that of an event in the journal.
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

// forgotten reports whether a journal that goes on with another place does not hold
// this one any more.
func (p place) forgotten(by place) bool {
	return p.revision > by.revision || p.revision == by.revision && p.sum != by.sum
}

// story is what the events have told of a run so far.
type story struct {
	submitted, finished bool
	started, ended      map[string]int // attempts by task and key
}

// tell adds an event.
func (a *Archive) tell(e event) (err error) {
	a.Events++
	if e.place, err = parsePlace(e.ID); err != nil {
		return err
	}
	a.takeBack(e.place)
	tale := a.tales[e.shard]
	if n := len(tale); n > 0 {
		if before := tale[n-1].place; e.revision < before.revision || e.revision == before.revision && e.index <= before.index {
			a.broke(RuleOrder, e.Run, "event %s comes after revision %d, index %d", e.ID, before.revision, before.index)
		}
	}
	s, task := a.story(e.Run), e.task()
	switch {
	case s.finished:
		a.broke(RuleOrder, e.Run, "event %s, %s, comes after the run's end", e.ID, e.Kind)
	case e.Kind == "submitted" == s.submitted:
		a.broke(RuleOrder, e.Run, "event %s, %s: a run begins with one event submitted", e.ID, e.Kind)
	case e.starts() && e.Attempt != s.started[task]+1,
		e.Kind == "attempt_finished" && (e.Attempt != s.started[task] || e.Attempt != s.ended[task]+1):
		a.broke(RuleOrder, e.Run, "event %s, %s %d of %s: %d have begun, %d have ended", e.ID, e.Kind, e.Attempt, e.Task, s.started[task], s.ended[task])
	}
	a.tales[e.shard] = append(tale, e)
	return a.note(e)
}

// starts reports whether the event starts an attempt: a call, or the run of a sub-flow.
func (e *event) starts() bool { return e.Kind == "attempt_started" || e.Kind == "child_started" }

// takeBack takes out of the tale what the journal does not hold any more when it goes
// on with the given place. Each such event is a finding, as of the time when it
// happened: the loss is what may be excused, and nothing that follows from it.
func (a *Archive) takeBack(next place) {
	tale := a.tales[next.shard]
	kept := len(tale)
	for kept > 0 && tale[kept-1].forgotten(next) {
		kept--
	}
	lost := tale[kept:]
	if len(lost) == 0 || slices.ContainsFunc(tale[:kept], func(e event) bool { return e.place == next }) {
		return // an event that comes again is no new course of things
	}
	runs := map[string]bool{}
	for _, e := range lost {
		runs[e.Run] = true
		a.broken = append(a.broken, Finding{
			Rule: RuleOrder, Run: e.Run, Told: e.At, What: fmt.Sprintf("event %s, %s, was told, and the journal goes on with revision %d", e.ID, e.Kind, next.revision),
		})
	}
	a.taken += len(lost)
	a.tales[next.shard] = tale[:kept]
	a.Ends = slices.DeleteFunc(a.Ends, func(end End) bool { return runs[end.Run] })
	for run := range runs {
		delete(a.runs, run)
		delete(a.Open, run)
	}
	for _, e := range tale[:kept] {
		if runs[e.Run] {
			_ = a.note(e) // it could be read before
		}
	}
}

func (a *Archive) story(run string) *story {
	if a.runs[run] == nil {
		a.runs[run] = &story{started: map[string]int{}, ended: map[string]int{}}
	}
	return a.runs[run]
}

func (e *event) task() string { return e.Task + "/" + e.Key }

// note brings a run's story up to date.
func (a *Archive) note(e event) error {
	s := a.story(e.Run)
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
		a.Ends = append(a.Ends, end)
	}
	return nil
}

func (a *Archive) broke(rule Rule, run, format string, args ...any) {
	a.broken = append(a.broken, Finding{Rule: rule, Run: run, What: fmt.Sprintf(format, args...)})
}
