package run

import (
	"errors"
	"slices"
	"time"
)

// ErrUnknown is what a reader of runs answers when it holds none of that id.
var ErrUnknown = errors.New("no such run, or it is older than the history that is kept")

// Limits of [Query.Limit].
const (
	DefaultPage = 50
	MaxPage     = 1000
)

// Query asks for a page of runs, newest first: in descending order of their ids,
// which is the order in which they were accepted, to the millisecond.
type Query struct {
	Flow   string    `json:"flow,omitempty"`   // full name; empty for all
	States []State   `json:"states,omitempty"` // none for all
	Since  time.Time `json:"since,omitzero"`   // accepted at or after, to the millisecond
	Until  time.Time `json:"until,omitzero"`   // accepted before, to the millisecond
	Before ID        `json:"before,omitempty"` // cursor: only runs with smaller ids
	Limit  int       `json:"limit,omitempty"`  // runs in a page; 0 is DefaultPage, at most MaxPage

	// Only runs for nominal times of a schedule, at or after the first and before the
	// second.
	NominalSince time.Time `json:"nominal_since,omitzero"`
	NominalUntil time.Time `json:"nominal_until,omitzero"`

	// Children asks for the runs of sub-flows, too. Those of the flow that is asked
	// for are part of the answer in any case.
	Children bool `json:"children,omitempty"`
}

// Matches reports whether a run belongs to the answer, whatever its place in it.
func (q *Query) Matches(s *Summary) bool {
	return (q.Flow == "" || q.Flow == s.Flow) &&
		(q.Children || q.Flow != "" || s.Parent == "") &&
		(len(q.States) == 0 || slices.Contains(q.States, s.State)) &&
		(q.Since.IsZero() || s.Run >= MinID(q.Since)) &&
		(q.Until.IsZero() || s.Run < MinID(q.Until)) &&
		(q.Before == "" || s.Run < q.Before) &&
		q.MatchesNominal(&s.Trigger)
}

// MatchesNominal reports whether a run belongs to the answer by its nominal time.
func (q *Query) MatchesNominal(t *TriggerSummary) bool {
	if q.NominalSince.IsZero() && q.NominalUntil.IsZero() {
		return true
	}
	return t.Kind.Scheduled() && !t.Time.Before(q.NominalSince) && (q.NominalUntil.IsZero() || t.Time.Before(q.NominalUntil))
}

// Size is the number of runs that a page may hold.
func (q *Query) Size() int {
	if q.Limit <= 0 {
		return DefaultPage
	}
	return min(q.Limit, MaxPage)
}

// Page is a part of the answer to a query.
type Page struct {
	Runs []Summary `json:"runs"`
	Next ID        `json:"next,omitempty"` // cursor of the following page; empty at the end
}

// Summary is a run in a list. Its JSON form is stable.
type Summary struct {
	Run        ID             `json:"run"`
	Flow       string         `json:"flow"`
	State      State          `json:"state"`
	WaitsFor   *WaitsFor      `json:"waits_for,omitempty"` // why it is pending
	CreatedAt  time.Time      `json:"created_at"`
	FinishedAt *time.Time     `json:"finished_at"`
	Trigger    TriggerSummary `json:"trigger"`
	Error      string         `json:"error,omitempty"`  // code of the run's failure
	Parent     ID             `json:"parent,omitempty"` // the run to which this one of a sub-flow belongs
}

// TriggerSummary is what of a trigger a list shows.
type TriggerSummary struct {
	Kind TriggerKind `json:"kind"`
	Name string      `json:"name,omitempty"`
	Time time.Time   `json:"time"` // nominal for a run of a schedule or a backfill
}

// Summary is the record without what only a single run shows.
func (r *Record) Summary() Summary {
	s := Summary{
		Run: r.Run, Flow: r.Flow, State: r.State, CreatedAt: r.CreatedAt, FinishedAt: r.FinishedAt,
		Trigger: TriggerSummary{Kind: r.Trigger.Kind, Name: r.Trigger.Name, Time: r.Trigger.Time},
	}
	if r.Error != nil {
		s.Error = r.Error.Code
	}
	if r.Parent != nil {
		s.Parent = r.Parent.Run
	}
	return s
}

// MinID is the smallest id of a run that was accepted at or after the given time.
func MinID(at time.Time) ID {
	return encodeID(idTime(at))
}
