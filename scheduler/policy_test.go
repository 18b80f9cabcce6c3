package scheduler

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// decide is Policy.Decide said plainly: every time since the last decision is
// looked at.
func decide(p Policy, s Schedule, j Jitter, after, now time.Time) Decision {
	p = p.withDefaults()
	var due []time.Time
	for t, ok := s.Next(after); ok && !t.After(now); t, ok = s.Next(t) {
		if !j.Due(s, t).After(now) {
			due = append(due, t)
		}
	}
	if len(due) == 0 {
		return Decision{}
	}
	late := func(t time.Time, bound time.Duration) bool { return now.Sub(j.Due(s, t)) > bound }
	d := Decision{Until: due[len(due)-1], Fire: due}
	if late(due[0], p.MisfireAfter) || len(due) > p.Max {
		d.Misfire = true
		switch p.CatchUp {
		case CatchUpLatest:
			d.Fire = due[len(due)-1:]
		case CatchUpNone:
			d.Fire = due[len(due)-1:]
			if late(d.Fire[0], p.MisfireAfter) {
				d.Fire = nil
			}
		case CatchUpAll:
			d.Fire = due[max(0, len(due)-p.Max):]
		}
		d.Fire = slices.DeleteFunc(slices.Clone(d.Fire), func(t time.Time) bool { return late(t, max(p.Window, p.MisfireAfter)) })
	}
	d.Dropped = len(due) - len(d.Fire)
	return d
}

// Outages of a minute, an hour, a day and 30 days around changes of the clock of
// each kind, with each policy.
func TestPolicyDecidesOutages(t *testing.T) {
	t.Parallel()
	changes := map[string]string{
		"America/New_York":    "2026-03-08T07:00:00Z", // an hour is skipped
		"Europe/Berlin":       "2026-10-25T01:00:00Z", // an hour comes twice
		"Australia/Lord_Howe": "2026-04-04T15:00:00Z", // half an hour does
		"America/Havana":      "2026-03-08T05:00:00Z", // midnight is skipped
		"Pacific/Apia":        "2011-12-30T10:00:00Z", // a day is
		"UTC":                 "2026-06-01T00:00:00Z",
	}
	exprs := []string{"30 2 * * *", "0 * * * *", "*/15 * * * *", "30 0,1 * * *", "0 0 * * *"}
	for zone, change := range changes {
		for i, expr := range exprs {
			t.Run(zone+" "+expr, func(t *testing.T) {
				t.Parallel()
				rnd := rand.New(rand.NewPCG(uint64(i), 5))
				s := cron(t, expr, zone)
				at, err := time.Parse(time.RFC3339, change)
				if err != nil {
					t.Fatal(err)
				}
				for _, down := range []time.Duration{time.Minute, time.Hour, 24 * time.Hour, 30 * 24 * time.Hour} {
					for range 10 {
						after := at.Add(-time.Duration(rnd.Int64N(int64(down) + 1)))
						checkDecision(t, rnd, s, after, after.Add(down))
					}
				}
			})
		}
	}
}

func checkDecision(t *testing.T, rnd *rand.Rand, s Schedule, after, now time.Time) {
	t.Helper()
	for c := CatchUpLatest; c <= CatchUpAll; c++ {
		p := Policy{CatchUp: c, MisfireAfter: pick(rnd, 0, time.Second, time.Hour), Window: pick(rnd, 0, time.Minute, 2*time.Hour, 100*24*time.Hour), Max: pick(rnd, 0, 1, 7)}
		j := Jitter{Max: pick(rnd, 0, time.Second, time.Hour), Stable: rnd.IntN(2) == 0, Name: fmt.Sprint(rnd.IntN(9))}
		want := decide(p, s, j, after, now)
		want.Dropped = min(want.Dropped, maxCounted-len(want.Fire))
		if diff := cmp.Diff(want, p.Decide(s, j, after, now), cmpopts.EquateEmpty()); diff != "" {
			t.Fatalf("%+v, %+v, from %s to %s (-want +got):\n%s", p, j, after, now, diff)
		}
	}
}

func pick[T any](rnd *rand.Rand, from ...T) T { return from[rnd.IntN(len(from))] }

// However much was missed, a decision is made at once. Source: kubernetes#42649,
// where a schedule stopped for good after 100 missed times.
func TestPolicyIsBounded(t *testing.T) {
	t.Parallel()
	s, err := NewEvery(time.Millisecond, 0)
	if err != nil {
		t.Fatal(err)
	}
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	d := Policy{CatchUp: CatchUpAll}.Decide(s, Jitter{}, now.AddDate(-50, 0, 0), now)
	if len(d.Fire) != DefaultCatchUpMax || d.Dropped < 1000 || !d.Until.Equal(now) || !d.Fire[len(d.Fire)-1].Equal(now) {
		t.Errorf("%d fire, %d dropped, until %s", len(d.Fire), d.Dropped, d.Until)
	}
}

// A clock that goes back makes nothing due again.
func TestPolicyNeverLooksBack(t *testing.T) {
	t.Parallel()
	s := cron(t, "* * * * *", "UTC")
	decided := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	for _, back := range []time.Duration{0, time.Second, time.Hour, 30 * 24 * time.Hour} {
		if d := (Policy{CatchUp: CatchUpAll}).Decide(s, Jitter{}, decided, decided.Add(-back)); !d.Until.IsZero() || d.Fire != nil {
			t.Errorf("%s back: %+v", back, d)
		}
	}
}

func TestJitter(t *testing.T) {
	t.Parallel()
	s := cron(t, "0 * * * *", "UTC")
	first := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	spread, stable := map[time.Duration]bool{}, map[time.Duration]bool{}
	for n := range 1000 {
		nominal := first.Add(time.Duration(n) * time.Hour)
		for of, j := range map[*map[time.Duration]bool]Jitter{
			&spread: {Max: 10 * time.Minute, Name: "f/s"},
			&stable: {Max: 10 * time.Minute, Name: "f/s", Stable: true},
		} {
			due := j.Due(s, nominal)
			if delay := due.Sub(nominal); delay < 0 || delay >= 10*time.Minute || !j.Due(s, nominal).Equal(due) {
				t.Fatalf("%+v delays %s by %s", j, nominal, delay)
			}
			(*of)[due.Sub(nominal)] = true
		}
		// Longer than the wait for the next time, the order would be lost.
		if due := (Jitter{Max: 100 * time.Hour, Name: "f/s"}).Due(s, nominal); !due.Before(nominal.Add(time.Hour)) {
			t.Fatalf("%s is delayed to %s, past the next time", nominal, due)
		}
	}
	if len(spread) < 990 || len(stable) != 1 {
		t.Errorf("%d delays that should differ, %d that should not", len(spread), len(stable))
	}
	if (Jitter{Max: time.Hour, Name: "a", Stable: true}).Due(s, first).Equal((Jitter{Max: time.Hour, Name: "b", Stable: true}).Due(s, first)) {
		t.Error("two names have one delay")
	}
	if due := (Jitter{}).Due(s, first); !due.Equal(first) {
		t.Errorf("without jitter, %s is due at %s", first, due)
	}
	// Delays are a part of what a schedule means: no version may move them.
	if due := (Jitter{Max: time.Hour, Name: "f/s"}).Due(s, first); due.Format(time.RFC3339Nano) != "2026-01-01T00:12:39.845624578Z" {
		t.Errorf("the delay has changed: %s", due.Format(time.RFC3339Nano))
	}
}
