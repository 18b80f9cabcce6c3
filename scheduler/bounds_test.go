package scheduler

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func moment(t *testing.T, text string) time.Time {
	t.Helper()
	at, err := time.Parse(time.RFC3339, text)
	if err != nil {
		t.Fatal(err)
	}
	return at
}

func TestBounded(t *testing.T) {
	t.Parallel()
	start, end := moment(t, "2026-03-01T09:00:00Z"), moment(t, "2026-03-03T09:00:00Z")
	b := Bounded{Schedule: cron(t, "0 9 * * *", "UTC"), Start: start, End: end}
	want := []time.Time{start, start.AddDate(0, 0, 1)} // the start counts, the end does not
	wide := [2]time.Time{start.AddDate(-1, 0, 0), end.AddDate(1, 0, 0)}
	if diff := cmp.Diff(want, slices.Collect(Between(b, wide[0], wide[1]))); diff != "" {
		t.Error(diff)
	}
	slices.Reverse(want)
	if diff := cmp.Diff(want, slices.Collect(Backward(b, wide[0], wide[1]))); diff != "" {
		t.Error(diff)
	}
	if s := b.String(); s != "0 9 * * * from 2026-03-01T09:00:00Z until 2026-03-03T09:00:00Z" {
		t.Error(s)
	}
	half := Bounded{Schedule: b.Schedule, Start: start}
	if at, ok := half.Next(end.AddDate(10, 0, 0)); !ok || at.Year() != 2036 {
		t.Errorf("without an end: %s, %v", at, ok)
	}
	if at, ok := half.Prev(start); ok {
		t.Errorf("before the start: %s", at)
	}
}

func TestBetweenTakesTheFirstInstantAndNotTheLast(t *testing.T) {
	t.Parallel()
	s := cron(t, "0 * * * *", "UTC")
	from := moment(t, "2026-03-01T09:00:00Z")
	if got := slices.Collect(Between(s, from, from.Add(2*time.Hour))); len(got) != 2 || !got[0].Equal(from) {
		t.Error(got)
	}
	if got := slices.Collect(Backward(s, from, from.Add(2*time.Hour))); len(got) != 2 || !got[1].Equal(from) {
		t.Error(got)
	}
	for range Between(s, from, from.AddDate(100, 0, 0)) {
		break // nothing is computed ahead
	}
}

func TestAt(t *testing.T) {
	t.Parallel()
	instant := moment(t, "2026-03-01T09:00:00+01:00")
	a := NewAt(instant)
	if at, ok := a.Next(instant.Add(-1)); !ok || !at.Equal(instant) {
		t.Errorf("%s, %v", at, ok)
	}
	if at, ok := a.Prev(instant.Add(1)); !ok || !at.Equal(instant) {
		t.Errorf("%s, %v", at, ok)
	}
	_, again := a.Next(instant)
	_, before := a.Prev(instant)
	_, never := At{}.Next(time.Time{})
	if again || before || never {
		t.Error("an instant comes once, and the zero value never", again, before, never)
	}
	if s := a.String(); s != "at 2026-03-01T09:00:00+01:00" {
		t.Error(s)
	}
}
