package render

import (
	"strings"
	"testing"
	"time"
)

// Flags for times accept the printed forms: RFC 3339 with the offset of the zone.
func TestTimesStateTheirZone(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 1, 2, 3, 4, 5, 250_000_000, time.UTC)
	for form, got := range map[string]string{time.RFC3339: LocalTime(at), time.RFC3339Nano: Nominal(at)} {
		read, err := time.Parse(form, got)
		want := at
		if form == time.RFC3339 {
			want = at.Truncate(time.Second)
		}
		if err != nil || !read.Equal(want) {
			t.Errorf("%s is %v, %v; want %v", got, read, err, want)
		}
	}
}

// The host's clock may be ahead.
func TestElapsed(t *testing.T) {
	t.Parallel()
	if got := Elapsed(time.Now().Add(time.Hour)); got != "0s" {
		t.Errorf("a start in the future: %s", got)
	}
	if got := Elapsed(time.Now().Add(-90 * time.Hour)); !strings.HasPrefix(got, "90h") {
		t.Errorf("90 hours: %s", got)
	}
}
