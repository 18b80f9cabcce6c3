package scheduler

import (
	"testing"
	"time"
)

// TestCivil compares a whole era, from 1677 on, with package time.
func TestCivil(t *testing.T) {
	t.Parallel()
	at := time.Date(1677, 1, 1, 0, 0, 0, 0, time.UTC)
	for range eraDays {
		day := floorDiv(at.Unix(), daySeconds)
		year, month, dayOfMonth := civil(day)
		if int(year) != at.Year() || month != int(at.Month()) || dayOfMonth != at.Day() {
			t.Fatalf("%v is %d-%d-%d", at, year, month, dayOfMonth)
		}
		if weekday(day) != int(at.Weekday()) {
			t.Fatalf("%v has weekday %d", at, weekday(day))
		}
		if start := firstOfMonth(year, month); start+int64(dayOfMonth)-1 != day {
			t.Fatalf("the month of %v starts on day %d", at, start)
		}
		tomorrow := at.AddDate(0, 0, 1)
		if last := dayOfMonth == monthLength(year, month); last != (tomorrow.Day() == 1) {
			t.Fatalf("the month of %v has %d days", at, monthLength(year, month))
		}
		at = tomorrow
	}
}
