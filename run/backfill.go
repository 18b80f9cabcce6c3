package run

import (
	"errors"
	"fmt"
	"slices"
	"time"
)

// Bounds of backfills.
const (
	MaxBackfillTimes  = 10_000 // nominal times of one backfill
	keptBackfills     = 100    // that have ended
	DefaultBackfilled = 1      // runs of one backfill at once
)

// Backfill makes the runs of nominal times of a schedule that lie in the past.
type Backfill struct {
	ID        ID
	Schedule  ScheduleRef
	Times     []time.Time // that are left, in the order in which their turn comes
	Total     int         // nominal times that there were at first
	First     time.Time   // of all nominal times, the earliest
	Last      time.Time   // and the latest
	MaxActive int         // runs at once
	Active    []ID        // runs that are going
	Succeeded int
	Failed    int
	Canceled  int
	Rejected  int // nominal times that the flow could make no run of
	StartedAt time.Time
	EndedAt   time.Time // the zero time while it goes
	Reason    string    // why it ended before its time; empty when all had their turn
}

// Done is how many nominal times have had their turn and their end.
func (b *Backfill) Done() int { return b.Succeeded + b.Failed + b.Canceled + b.Rejected }

// Events of backfills. They belong to no run.
type (
	// BackfillStarted begins a backfill.
	BackfillStarted struct {
		ID        ID          `json:"id"`
		Schedule  ScheduleRef `json:"schedule"`
		Times     []time.Time `json:"times"`
		MaxActive int         `json:"max_active"`
	}

	// BackfillAdvanced takes the next nominal time out. The event's run is the one
	// that it has made, empty when the flow could make none of it.
	BackfillAdvanced struct {
		ID ID `json:"id"`
	}

	// BackfillEnded ends a backfill: what is left of its times makes no run.
	BackfillEnded struct {
		ID     ID     `json:"id"`
		Reason string `json:"reason,omitempty"`
	}
)

// Kind implements EventData.
func (*BackfillStarted) Kind() string  { return KindBackfillStarted }
func (*BackfillAdvanced) Kind() string { return KindBackfillAdvanced }
func (*BackfillEnded) Kind() string    { return KindBackfillEnded }

// Backfill finds a backfill that is going or has not ended long ago; nil when
// there is none of that id.
func (s *Shard) Backfill(id ID) *Backfill {
	i := slices.IndexFunc(s.Backfills, func(b *Backfill) bool { return b.ID == id })
	if i < 0 {
		return nil
	}
	return s.Backfills[i]
}

// checkBackfill reports why an event of a backfill does not fit.
func (s *Shard) checkBackfill(data EventData) error {
	var id ID
	switch d := data.(type) {
	case *BackfillStarted:
		if s.Backfill(d.ID) != nil {
			return fmt.Errorf("backfill %s exists already", d.ID)
		}
		return nil
	case *BackfillAdvanced:
		id = d.ID
	case *BackfillEnded:
		id = d.ID
	}
	b := s.Backfill(id)
	if b == nil || !b.EndedAt.IsZero() {
		return fmt.Errorf("backfill %s is not going", id)
	}
	if _, advanced := data.(*BackfillAdvanced); advanced && len(b.Times) == 0 {
		return errors.New("the backfill has no times left")
	}
	return nil
}

// applyBackfill folds an event that checkBackfill has passed.
func (s *Shard) applyBackfill(e Event) {
	switch d := e.Data.(type) {
	case *BackfillStarted:
		b := &Backfill{
			ID: d.ID, Schedule: d.Schedule, Times: slices.Clone(d.Times), Total: len(d.Times), MaxActive: d.MaxActive, StartedAt: e.At,
		}
		if len(d.Times) > 0 {
			b.First, b.Last = slices.MinFunc(d.Times, time.Time.Compare), slices.MaxFunc(d.Times, time.Time.Compare)
		}
		s.Backfills = append(s.Backfills, b)
		s.dropBackfills()
	case *BackfillAdvanced:
		b := s.Backfill(d.ID)
		b.Times = b.Times[1:]
		if e.Run == "" {
			b.Rejected++
			return
		}
		b.Active = append(b.Active, e.Run)
	case *BackfillEnded:
		b := s.Backfill(d.ID)
		b.EndedAt, b.Reason, b.Times = e.At, d.Reason, nil
	}
}

// dropBackfills forgets the oldest of those that have ended.
func (s *Shard) dropBackfills() {
	ended := 0
	for _, b := range s.Backfills {
		if !b.EndedAt.IsZero() {
			ended++
		}
	}
	s.Backfills = slices.DeleteFunc(s.Backfills, func(b *Backfill) bool {
		drop := ended > keptBackfills && !b.EndedAt.IsZero() && len(b.Active) == 0
		if drop {
			ended--
		}
		return drop
	})
}

func (b *Backfill) count(end State) {
	switch end {
	case Succeeded:
		b.Succeeded++
	case Canceled:
		b.Canceled++
	default:
		b.Failed++
	}
}
