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

func cron(t testing.TB, expr, zone string) *Cron {
	t.Helper()
	location, err := time.LoadLocation(zone)
	if err != nil {
		t.Fatal(err)
	}
	c, err := ParseCron(expr, location)
	if err != nil {
		t.Fatal(err)
	}
	return c
}
