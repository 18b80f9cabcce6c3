package run

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

// ScheduleRef names a schedule trigger.
type ScheduleRef struct {
	Flow    string `json:"flow"`
	Trigger string `json:"trigger"`
}

// String is "flow/trigger".
func (r ScheduleRef) String() string { return r.Flow + "/" + r.Trigger }

// ParseScheduleRef reads what String gives: only names of flows have slashes.
func ParseScheduleRef(text string) (ScheduleRef, bool) {
	i := strings.LastIndexByte(text, '/')
	if i <= 0 || i == len(text)-1 {
		return ScheduleRef{}, false
	}
	return ScheduleRef{Flow: text[:i], Trigger: text[i+1:]}, true
}

// Compare orders schedules by flow, then by trigger.
func (r ScheduleRef) Compare(other ScheduleRef) int {
	return cmp.Or(cmp.Compare(r.Flow, other.Flow), cmp.Compare(r.Trigger, other.Trigger))
}

// Schedule is what the journal knows of a schedule trigger.
type Schedule struct {
	ScheduleRef
	Spec     string    `json:"-"`                // what its nominal times come from; empty while it is off
	Edited   time.Time `json:"edited,omitzero"`  // when the spec was changed last; the zero time for never
	Decided  time.Time `json:"decided,omitzero"` // watermark: every nominal time up to it has made its run, or never will
	Fired    int       `json:"fired"`            // runs that it has made since the spec is what it is
	Failures int       `json:"failures"`         // how many of its runs have failed since the last one that succeeded
	Pause    *Pause    `json:"pause,omitempty"`  // nil while it goes
}

// Pause is why a schedule does not fire, or why a host starts no attempt.
type Pause struct {
	Reason string    `json:"reason"`
	At     time.Time `json:"at"`
}

// Reasons for nominal times that make no run.
const (
	DropMisfire  = "misfire"  // later than the catch-up policy takes
	DropOverlap  = "overlap"  // an earlier run of the schedule is still going
	DropLimit    = "limit"    // the flow's concurrency leaves runs over its limit out
	DropPaused   = "paused"   // the schedule was paused
	DropRejected = "rejected" // the flow cannot make a run of it
)

// Events of schedules. They belong to no run.
type (
	// ScheduleSet begins a schedule, or continues with another spec: everything up to
	// From counts as decided. With the spec that it has, it takes the watermark back.
	ScheduleSet struct {
		ScheduleRef
		Spec string    `json:"spec"`
		From time.Time `json:"from"`
	}

	// ScheduleAdvanced moves the watermark of a schedule to a nominal time. The
	// event's run is the one that it has made; it is empty when Dropped nominal times,
	// of which this is the last, made none.
	ScheduleAdvanced struct {
		ScheduleRef
		Nominal time.Time `json:"nominal"`
		Dropped int       `json:"dropped,omitempty"`
		Reason  string    `json:"reason,omitempty"` // one of the Drop constants
	}

	// SchedulePaused stops a schedule.
	SchedulePaused struct {
		ScheduleRef
		Reason string `json:"reason"`
	}

	// ScheduleResumed lets a paused schedule continue.
	ScheduleResumed struct {
		ScheduleRef
	}
)

// Kind implements EventData.
func (*ScheduleSet) Kind() string      { return KindScheduleSet }
func (*ScheduleAdvanced) Kind() string { return KindScheduleAdvanced }
func (*SchedulePaused) Kind() string   { return KindSchedulePaused }
func (*ScheduleResumed) Kind() string  { return KindScheduleResumed }

// checkSchedule reports why an event of a schedule does not fit.
func (s *Shard) checkSchedule(data EventData) error {
	if d, ok := data.(*ScheduleSet); ok {
		if known := s.Schedules[d.ScheduleRef]; known != nil && known.Spec == d.Spec && !d.From.Before(known.Decided) {
			return fmt.Errorf("schedule %s has that spec already", d.ScheduleRef)
		}
		return nil
	}
	known := s.Schedules[scheduleOf(data)]
	if known == nil {
		return fmt.Errorf("schedule %s is not known", scheduleOf(data))
	}
	switch d := data.(type) {
	case *ScheduleAdvanced:
		if !d.Nominal.After(known.Decided) {
			return fmt.Errorf("schedule %s was decided up to %s, and again %s", d.ScheduleRef, known.Decided, d.Nominal)
		}
	case *SchedulePaused:
		if known.Pause != nil {
			return errors.New("the schedule is paused already")
		}
	case *ScheduleResumed:
		if known.Pause == nil {
			return errors.New("the schedule is not paused")
		}
	}
	return nil
}

func scheduleOf(data EventData) ScheduleRef {
	switch d := data.(type) {
	case *ScheduleSet:
		return d.ScheduleRef
	case *ScheduleAdvanced:
		return d.ScheduleRef
	case *SchedulePaused:
		return d.ScheduleRef
	case *ScheduleResumed:
		return d.ScheduleRef
	}
	return ScheduleRef{}
}

// applySchedule folds an event that checkSchedule has passed.
func (s *Shard) applySchedule(e Event) {
	known := s.Schedules[scheduleOf(e.Data)]
	switch d := e.Data.(type) {
	case *ScheduleSet:
		if known == nil {
			s.Schedules[d.ScheduleRef] = &Schedule{ScheduleRef: d.ScheduleRef, Spec: d.Spec, Decided: d.From}
			return
		}
		if known.Spec == d.Spec {
			known.Decided = d.From
			return
		}
		if d.From.After(known.Decided) {
			known.Decided = d.From
		}
		known.Spec, known.Edited, known.Fired = d.Spec, e.At, 0
	case *ScheduleAdvanced:
		known.Decided = d.Nominal
		if e.Run != "" {
			known.Fired++
		}
	case *SchedulePaused:
		known.Pause = &Pause{Reason: d.Reason, At: e.At}
	case *ScheduleResumed:
		known.Pause, known.Failures = nil, 0
	}
}

// runEnded counts the end of a run for the schedule and the backfills that made it,
// and for the next runs of its flow.
func (s *Shard) runEnded(r *Run) {
	if r.State == Succeeded && r.Trigger.Time.After(s.Successes[r.Flow]) {
		s.Successes[r.Flow] = r.Trigger.Time
	}
	switch r.Trigger.Kind {
	case TriggerSchedule:
		if known := s.Schedules[ScheduleRef{r.Flow, r.Trigger.Name}]; known != nil {
			known.count(r.State)
		}
	case TriggerBackfill:
		for _, b := range s.Backfills {
			if i := slices.Index(b.Active, r.ID); i >= 0 {
				b.Active = slices.Delete(b.Active, i, i+1)
				b.count(r.State)
			}
		}
	}
}

func (s *Schedule) count(end State) {
	switch end {
	case Failed:
		s.Failures++
	case Succeeded:
		s.Failures = 0
	}
}
