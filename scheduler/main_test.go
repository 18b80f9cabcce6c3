package scheduler

import (
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func add[T any](t testing.TB, q *Queue[T], due time.Time, value T) Timer {
	t.Helper()
	timer, err := q.Add(due, value)
	if err != nil {
		t.Fatal(err)
	}
	return timer
}

func location(t testing.TB, zone string) *time.Location {
	t.Helper()
	l, err := time.LoadLocation(zone)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func cron(t testing.TB, expr, zone string) *Cron {
	t.Helper()
	return cronWith(t, expr, CronOptions{Zone: location(t, zone)})
}

func cronWith(t testing.TB, expr string, o CronOptions) *Cron {
	t.Helper()
	c, err := ParseCron(expr, o)
	if err != nil {
		t.Fatal(err)
	}
	return c
}
