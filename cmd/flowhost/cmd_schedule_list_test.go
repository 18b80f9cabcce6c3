package main

import (
	"strings"
	"testing"
	"time"

	"github.com/flowhost/flowhost/run"
)

// A schedule of one time without a run is missed; the note tells apart whether it could
// have made one.
func TestMissedSchedules(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	once := func(change func(*run.ScheduleStatus)) run.ScheduleStatus {
		s := run.ScheduleStatus{Enabled: true, Expression: "2026-01-02T04:04:05+01:00", Zone: "UTC"}
		s.Flow, s.Trigger, s.Decided = "f", "once", at
		change(&s)
		return s
	}
	for name, c := range map[string]struct {
		schedule    run.ScheduleStatus
		state, note string
	}{
		"dropped":       {once(func(s *run.ScheduleStatus) {}), "missed", "the host's log has the reason: 'flowhost schedule fire f/once'"},
		"deployed late": {once(func(s *run.ScheduleStatus) { s.Decided = at.Add(time.Hour) }), "missed", "it was over when the schedule was deployed"},
		"fired":         {once(func(s *run.ScheduleStatus) { s.Fired = 1 }), "ended", ""},
		"to come":       {once(func(s *run.ScheduleStatus) { s.Next = at }), "active", ""},
		"off":           {once(func(s *run.ScheduleStatus) { s.Enabled = false }), "off", ""},
		"paused":        {once(func(s *run.ScheduleStatus) { s.Pause = &run.Pause{Reason: "why", At: at} }), "paused", "why"},
		"of many times": {once(func(s *run.ScheduleStatus) { s.Expression = "@yearly" }), "ended", ""},
	} {
		row := scheduleRow(c.schedule)
		if row[1] != c.state || !strings.Contains(row[5], c.note) || c.note == "" && row[5] != "" {
			t.Errorf("%s: %q, want %s with %q", name, row, c.state, c.note)
		}
	}
}
