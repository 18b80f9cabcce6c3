package run

import (
	"errors"
	"testing"
	"time"
)

var night = ScheduleRef{Flow: "orders", Trigger: "night"}

// fold applies events one second apart, and answers the last error.
func fold(t *testing.T, s *Shard, events ...Event) {
	t.Helper()
	for i, e := range events {
		e.At = t0.Add(time.Duration(i) * time.Second)
		if _, err := s.Apply(e); err != nil {
			t.Fatalf("event %d: %v", i, err)
		}
	}
}

func facts(data ...EventData) []Event {
	events := make([]Event, len(data))
	for i, d := range data {
		events[i].Data = d
	}
	return events
}

func refused(t *testing.T, s *Shard, what string, data EventData) {
	t.Helper()
	if _, err := s.Apply(Event{At: t0, Data: data}); !errors.As(err, new(*TransitionError)) {
		t.Errorf("%s: error %v, want a TransitionError", what, err)
	}
}

func TestAScheduleIsDecidedForwards(t *testing.T) {
	t.Parallel()
	s := NewShard()
	refused(t, s, "unknown", &ScheduleAdvanced{ScheduleRef: night, Nominal: t0})
	fold(t, s, facts(&ScheduleSet{ScheduleRef: night, Spec: "a", From: t0})...)
	refused(t, s, "the watermark again", &ScheduleAdvanced{ScheduleRef: night, Nominal: t0})
	refused(t, s, "the same spec", &ScheduleSet{ScheduleRef: night, Spec: "a", From: t0})
	fold(t, s, Event{Run: "r", Data: &ScheduleAdvanced{ScheduleRef: night, Nominal: t0.Add(time.Hour)}})
	known := s.Schedules[night]
	if known.Fired != 1 || !known.Decided.Equal(t0.Add(time.Hour)) || !known.Edited.IsZero() {
		t.Errorf("after one run: %+v", known)
	}
	// A clock that was wrong takes the watermark back, and nothing else.
	fold(t, s, facts(&ScheduleSet{ScheduleRef: night, Spec: "a", From: t0.Add(time.Minute)})...)
	if known.Fired != 1 || !known.Decided.Equal(t0.Add(time.Minute)) || !known.Edited.IsZero() {
		t.Errorf("after a correction: %+v", known)
	}
	fold(t, s, facts(&ScheduleAdvanced{ScheduleRef: night, Nominal: t0.Add(time.Hour)})...)
	// An edit counts again and never makes the past due again.
	fold(t, s, facts(&ScheduleSet{ScheduleRef: night, Spec: "b", From: t0})...)
	if known.Fired != 0 || !known.Decided.Equal(t0.Add(time.Hour)) || known.Edited.IsZero() {
		t.Errorf("after an edit: %+v", known)
	}
}

func TestASchedulePausesAndCountsFailures(t *testing.T) {
	t.Parallel()
	s := NewShard()
	fold(t, s, facts(&ScheduleSet{ScheduleRef: night, Spec: "a", From: t0})...)
	refused(t, s, "resumed while it goes", &ScheduleResumed{ScheduleRef: night})
	for i, end := range []State{Failed, Succeeded, Failed, Canceled, Failed} {
		id := ID(rune('a' + i))
		fold(t, s,
			Event{Run: id, Data: &Submitted{Flow: night.Flow, Trigger: Trigger{Kind: TriggerSchedule, Name: night.Trigger}}},
			Event{Run: id, Data: &Finished{State: end}})
	}
	if n := s.Schedules[night].Failures; n != 2 {
		t.Errorf("%d failures in a row, want the 2 after the success", n)
	}
	fold(t, s, facts(&SchedulePaused{ScheduleRef: night, Reason: "why"})...)
	refused(t, s, "paused twice", &SchedulePaused{ScheduleRef: night, Reason: "again"})
	fold(t, s, facts(&ScheduleSet{ScheduleRef: night, Spec: "b", From: t0})...)
	if p := s.Schedules[night].Pause; p == nil || p.Reason != "why" {
		t.Errorf("an edit has ended the pause: %v", p)
	}
	fold(t, s, facts(&ScheduleResumed{ScheduleRef: night})...)
	if known := s.Schedules[night]; known.Pause != nil || known.Failures != 0 {
		t.Errorf("after it was resumed: %+v", known)
	}
}

func TestABackfillCountsItsRuns(t *testing.T) {
	t.Parallel()
	s := NewShard()
	fold(t, s, facts(&BackfillStarted{ID: "b", Schedule: night, Times: []time.Time{t0, t0.Add(1), t0.Add(2), t0.Add(3)}, MaxActive: 2})...)
	refused(t, s, "twice", &BackfillStarted{ID: "b", Schedule: night})
	trigger := Trigger{Kind: TriggerBackfill, Name: night.Trigger}
	fold(t, s,
		Event{Run: "r1", Data: &Submitted{Flow: night.Flow, Trigger: trigger}},
		Event{Run: "r1", Data: &BackfillAdvanced{ID: "b"}},
		Event{Run: "r2", Data: &Submitted{Flow: night.Flow, Trigger: trigger}},
		Event{Run: "r2", Data: &BackfillAdvanced{ID: "b"}},
		Event{Data: &BackfillAdvanced{ID: "b"}},
		Event{Run: "r1", Data: &Finished{State: Succeeded}})
	b := s.Backfill("b")
	if b.Succeeded != 1 || b.Rejected != 1 || b.Done() != 2 || len(b.Active) != 1 || len(b.Times) != 1 || !b.Times[0].Equal(t0.Add(3)) {
		t.Errorf("%+v, %d done", b, b.Done())
	}
	fold(t, s, facts(&BackfillEnded{ID: "b", Reason: "canceled"})...)
	refused(t, s, "after its end", &BackfillAdvanced{ID: "b"})
	if b.Done() != 2 {
		t.Errorf("%d done: what had no turn counts", b.Done())
	}
	fold(t, s, Event{Run: "r2", Data: &Finished{State: Failed}})
	if b.Failed != 1 || len(b.Active) != 0 {
		t.Errorf("a run that ends after its backfill is not counted: %+v", b)
	}
}

func TestEndedBackfillsAreForgotten(t *testing.T) {
	t.Parallel()
	s := NewShard()
	fold(t, s, facts(&BackfillStarted{ID: "going", Schedule: night, Times: []time.Time{t0}})...)
	for i := range 3 * keptBackfills {
		id := ID(rune('a' + i))
		fold(t, s, facts(&BackfillStarted{ID: id, Schedule: night}, &BackfillEnded{ID: id})...)
	}
	if n := len(s.Backfills); n > keptBackfills+2 || s.Backfill("going") == nil {
		t.Errorf("%d backfills are kept, the one that goes: %v", n, s.Backfill("going"))
	}
}

func TestParseScheduleRef(t *testing.T) {
	t.Parallel()
	for _, want := range []ScheduleRef{night, {Flow: "billing/invoice", Trigger: "monthly"}} {
		if got, ok := ParseScheduleRef(want.String()); !ok || got != want {
			t.Errorf("%q is read as %+v, %t", want.String(), got, ok)
		}
	}
	for _, text := range []string{"", "orders", "/night", "orders/", "/"} {
		if got, ok := ParseScheduleRef(text); ok {
			t.Errorf("%q is read as %+v", text, got)
		}
	}
}
