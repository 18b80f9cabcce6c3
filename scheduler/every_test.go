package scheduler

import (
	"errors"
	"testing"
	"time"
)

func TestEvery(t *testing.T) {
	t.Parallel()
	tests := []struct {
		interval, offset time.Duration
		after, want      string
	}{
		{time.Hour, 0, "2026-02-01T10:20:30Z", "2026-02-01T11:00:00Z"},
		{time.Hour, 0, "2026-02-01T11:00:00Z", "2026-02-01T12:00:00Z"},
		{time.Hour, 0, "2026-02-01T10:59:59.999999999Z", "2026-02-01T11:00:00Z"},
		{time.Hour, 5 * time.Minute, "2026-02-01T11:00:00Z", "2026-02-01T11:05:00Z"},
		{time.Hour, 5 * time.Minute, "2026-02-01T11:05:00Z", "2026-02-01T12:05:00Z"},
		{250 * time.Millisecond, 0, "2026-02-01T11:05:00.3Z", "2026-02-01T11:05:00.5Z"},
		{7 * time.Second, 0, "1970-01-01T00:00:00Z", "1970-01-01T00:00:07Z"},
		{7 * time.Second, 3 * time.Second, "1969-12-31T23:59:50Z", "1969-12-31T23:59:56Z"},
		{7 * time.Second, 0, "1969-12-31T23:59:59Z", "1970-01-01T00:00:00Z"},
		{1_500_000 * time.Nanosecond, 0, "1970-01-01T00:00:00.001Z", "1970-01-01T00:00:00.0015Z"},
		{time.Hour, 0, "2026-03-08T02:30:00-05:00", "2026-03-08T08:00:00Z"}, // no gap in elapsed time
	}
	for _, tt := range tests {
		e, err := NewEvery(tt.interval, tt.offset)
		if err != nil {
			t.Fatal(err)
		}
		after, err := time.Parse(time.RFC3339Nano, tt.after)
		if err != nil {
			t.Fatal(err)
		}
		if got, ok := e.Next(after); !ok || got.Format(time.RFC3339Nano) != tt.want {
			t.Errorf("%v after %s: %v, want %s", e, tt.after, got, tt.want)
		}
	}
}

func TestEveryDoesNotDrift(t *testing.T) {
	t.Parallel()
	e, err := NewEvery(333*time.Millisecond, 0)
	if err != nil {
		t.Fatal(err)
	}
	start, _ := e.Next(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))
	at := start
	for range 10_000 {
		at, _ = e.Next(at)
	}
	if got := at.Sub(start); got != 3330*time.Second {
		t.Errorf("10 000 intervals took %v", got)
	}
}

func TestEveryEnds(t *testing.T) {
	t.Parallel()
	e, err := NewEvery(24*time.Hour, 0)
	if err != nil {
		t.Fatal(err)
	}
	for _, year := range []int{2263, 9999} {
		if next, ok := e.Next(time.Date(year, 1, 1, 0, 0, 0, 0, time.UTC)); ok {
			t.Errorf("%v after the year %d", next, year)
		}
	}
	if next, ok := e.Next(time.Time{}); !ok || next.Year() != 1677 {
		t.Errorf("the first time is %v, %v", next, ok)
	}
	if next, ok := (Every{}).Next(time.Now()); ok {
		t.Errorf("the zero value has the time %v", next)
	}
}

func TestNewEveryErrors(t *testing.T) {
	t.Parallel()
	tests := []struct{ interval, offset time.Duration }{
		{0, 0}, {-time.Second, 0}, {time.Millisecond - 1, 0},
		{time.Second, -1}, {time.Second, time.Second},
	}
	for _, tt := range tests {
		if _, err := NewEvery(tt.interval, tt.offset); !errors.As(err, new(*IntervalError)) {
			t.Errorf("every %v offset %v: %v", tt.interval, tt.offset, err)
		}
	}
	if _, err := NewEvery(MinInterval, MinInterval-1); err != nil {
		t.Error(err)
	}
}

func TestEveryString(t *testing.T) {
	t.Parallel()
	tests := []struct {
		interval, offset time.Duration
		want             string
	}{
		{250 * time.Millisecond, 0, "every 250ms"},
		{15 * time.Minute, 0, "every 15m"},
		{time.Hour, 5 * time.Minute, "every 1h offset 5m"},
		{90 * time.Minute, 90 * time.Second, "every 1h30m offset 1m30s"},
		{10 * time.Second, 0, "every 10s"},
		{10 * time.Hour, 0, "every 10h"},
		{20 * time.Minute, 0, "every 20m"},
	}
	for _, tt := range tests {
		e, err := NewEvery(tt.interval, tt.offset)
		if err != nil {
			t.Fatal(err)
		}
		if got := e.String(); got != tt.want {
			t.Errorf("%q, want %q", got, tt.want)
		}
	}
}
