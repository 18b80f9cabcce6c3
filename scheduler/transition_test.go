package scheduler

import (
	"testing"
	"time"
)

func TestNextTransition(t *testing.T) {
	t.Parallel()
	tests := []struct {
		zone, after, want string
		shift             time.Duration
	}{
		{"America/New_York", "2026-01-01T00:00:00Z", "2026-03-08T03:00:00-04:00", time.Hour},
		{"America/New_York", "2026-03-08T06:59:59.999999999Z", "2026-03-08T03:00:00-04:00", time.Hour},
		{"America/New_York", "2026-03-08T07:00:00Z", "2026-11-01T01:00:00-05:00", -time.Hour},
		{"America/New_York", "2026-11-01T06:00:00Z", "2027-03-14T03:00:00-04:00", time.Hour},
		{"America/New_York", "2100-12-01T00:00:00Z", "2101-03-13T03:00:00-04:00", time.Hour}, // by the zone's rule
		{"America/New_York", "2096-12-31T12:00:00Z", "2097-03-10T03:00:00-04:00", time.Hour}, // the rule's year has 365 days
		{"Australia/Lord_Howe", "2026-09-01T00:00:00Z", "2026-10-04T02:30:00+11:00", 30 * time.Minute},
		{"Pacific/Apia", "2011-12-01T00:00:00Z", "2011-12-31T00:00:00+14:00", 24 * time.Hour},
		{"Africa/Monrovia", "1971-01-01T00:00:00Z", "1972-01-07T00:44:30Z", 44*time.Minute + 30*time.Second},
		{"Asia/Kolkata", "1940-01-01T00:00:00Z", "1941-10-01T01:00:00+06:30", time.Hour},
	}
	for _, tt := range tests {
		after, err := time.Parse(time.RFC3339Nano, tt.after)
		if err != nil {
			t.Fatal(err)
		}
		got, ok := NextTransition(location(t, tt.zone), after)
		if !ok || got.At.Format(time.RFC3339) != tt.want || got.Shift() != tt.shift {
			t.Errorf("%s after %s: %v by %v, %v; want %s by %v", tt.zone, tt.after, got.At, got.Shift(), ok, tt.want, tt.shift)
		}
	}
}

func TestNextTransitionEnds(t *testing.T) {
	t.Parallel()
	tests := []struct {
		zone string
		year int
	}{{"UTC", 1900}, {"Asia/Kolkata", 2026}, {"Etc/GMT+5", 2026}, {"America/New_York", 2262}, {"America/New_York", 5000}}
	for _, tt := range tests {
		after := time.Date(tt.year, 4, 1, 0, 0, 0, 0, time.UTC)
		if got, ok := NextTransition(location(t, tt.zone), after); ok {
			t.Errorf("%s after %v: %v", tt.zone, after, got.At)
		}
	}
	if got, ok := NextTransition(nil, time.Now()); ok {
		t.Errorf("without a zone: %v", got)
	}
	if got, ok := NextTransition(location(t, "America/New_York"), time.Time{}); !ok || got.At.Year() != 1883 {
		t.Errorf("the first is %v, %v", got, ok)
	}
}
