package engine

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/flowhost/flowhost/engine/memory"
)

// scheduled is a flow of one schedule with further arguments.
func scheduled(arguments string) string {
	return fmt.Sprintf(`
flow "f" {
  trigger "schedule" "s" {
    %s
  }
  task "a" { plugin = "./m.wasm" }
}`, arguments)
}

// A host that was down decides by the policy what it has missed. Sources: dagu#2742
// and robfig/cron#26 ran everything that a suspend had missed, kubernetes#42649
// stopped the schedule for good when too much was missed.
func TestOutages(t *testing.T) {
	t.Parallel()
	const m, h, day = time.Minute, time.Hour, 24 * time.Hour
	for _, c := range []struct {
		name      string
		schedule  string
		up, down  time.Duration
		after     time.Duration // up again
		want      []time.Duration
		wantCount int // instead of want
	}{
		{name: "a short restart loses nothing", schedule: `every = "10s"
			overlap = "allow"`, up: 25 * time.Second, down: 20 * time.Second, after: 6 * time.Second,
			want: []time.Duration{10 * time.Second, 20 * time.Second, 30 * time.Second, 40 * time.Second, 50 * time.Second}},
		{name: "an hour, the latest", schedule: `every = "5m"`, up: 7 * m, down: h, after: 5 * m, want: []time.Duration{5 * m, 65 * m, 70 * m}},
		{name: "an hour, none", schedule: `every = "5m"
			catch_up = "none"`, up: 7 * m, down: h, after: 5 * m, want: []time.Duration{5 * m, 70 * m}},
		{name: "none takes what is not late", schedule: `every = "5m"
			catch_up = "none"`, up: 7 * m, down: h - 2*m + 30*time.Second, after: m, want: []time.Duration{5 * m, 65 * m}},
		{name: "half an hour, all", schedule: `every = "5m"
			overlap = "queue"
			catch_up = "all"`, up: 7 * m, down: 20 * m, after: 5 * m, want: []time.Duration{5 * m, 10 * m, 15 * m, 20 * m, 25 * m, 30 * m}},
		{name: "all within the window", schedule: `every = "5m"
			overlap = "queue"
			catch_up = "all"
			catch_up_window = "12m"`, up: 7 * m, down: 20 * m, after: m, want: []time.Duration{5 * m, 15 * m, 20 * m, 25 * m}},
		{name: "the newest of all", schedule: `every = "5m"
			overlap = "queue"
			catch_up = "all"
			catch_up_max = 2`, up: 7 * m, down: 20 * m, after: m, want: []time.Duration{5 * m, 20 * m, 25 * m}},
		{name: "30 days of seconds are one run", schedule: `every = "1s"
			misfire_after = "2s"`, up: 1500 * time.Millisecond, down: 30 * day, after: 600 * time.Millisecond,
			want: []time.Duration{time.Second, 30*day + time.Second, 30*day + 2*time.Second}},
		{name: "30 days, all, are a hundred runs", schedule: `every = "1s"
			overlap = "allow"
			catch_up = "all"`, up: 1500 * time.Millisecond, down: 30 * day, after: 100 * time.Millisecond, wantCount: 101},
		{name: "what is older than the window is dropped", schedule: `cron = "0 3 * * *"`, up: m, down: 6 * h, after: day, want: []time.Duration{27 * h}},
		{name: "a one-shot is caught up", schedule: `at = "2000-01-01T00:30:00Z"`, up: m, down: h, after: m, want: []time.Duration{30 * m}},
		{name: "a one-shot fires once", schedule: `at = "2000-01-01T00:00:30Z"`, up: m, down: h, after: 30 * day, want: []time.Duration{30 * time.Second}},
		{name: "a count holds over restarts", schedule: `every = "1m"
			count = 3`, up: 2*m + 30*time.Second, down: 10 * time.Second, after: h, want: []time.Duration{m, 2 * m, 3 * m}},
		{name: "start and end", schedule: `every = "1m"
			start = "2000-01-01T00:02:00Z"
			end = "2000-01-01T00:04:00Z"`, up: h, down: m, after: m, want: []time.Duration{2 * m, 3 * m}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			set := load(t, scheduled(c.schedule))
			synctest.Test(t, func(t *testing.T) {
				journal := memory.NewJournal()
				r := boot(t, Config{Journal: journal}, set)
				time.Sleep(c.up)
				r.crash()
				time.Sleep(c.down)
				r = boot(t, Config{Journal: journal}, set)
				time.Sleep(c.after)
				synctest.Wait()
				r.stop()
				if c.wantCount > 0 {
					if n := len(fired(t, journal)); n != c.wantCount {
						t.Errorf("%d runs, want %d", n, c.wantCount)
					}
					return
				}
				wantFires(t, journal, c.want...)
			})
		})
	}
}

// Editing a schedule, or switching it on, makes nothing of the past due. Sources:
// systemd#16732, dagster#13597.
func TestEditsFireNothing(t *testing.T) {
	t.Parallel()
	const h = time.Hour
	sets := map[string]string{
		"as it was":    `cron = "0 * * * *"`,
		"another time": `cron = "30 * * * *"`,
		"another zone": `
			cron     = "0 12 * * *"
			timezone = "Asia/Tokyo"`,
		"off": `
			cron    = "0 * * * *"
			enabled = false`,
	}
	for _, c := range []struct {
		after string
		want  []time.Duration
	}{
		{"as it was", []time.Duration{h, 2 * h, 3 * h, 4 * h}}, // caught up: the same spec
		{"another time", []time.Duration{h, 2*h + 30*time.Minute, 3*h + 30*time.Minute}},
		{"another zone", []time.Duration{h, 3 * h}},
		{"off", []time.Duration{h, 4 * h}},
	} {
		t.Run(c.after, func(t *testing.T) {
			t.Parallel()
			before, after := load(t, scheduled(sets["as it was"])), load(t, scheduled(sets[c.after]))
			synctest.Test(t, func(t *testing.T) {
				journal := memory.NewJournal()
				r := boot(t, Config{Journal: journal}, before)
				time.Sleep(h + time.Minute)
				r.crash()
				time.Sleep(h + 10*time.Minute)
				r = boot(t, Config{Journal: journal}, after)
				time.Sleep(h + 29*time.Minute)
				if c.after == "off" {
					if err := r.Deploy(t.Context(), before); err != nil {
						t.Fatal(err)
					}
				}
				time.Sleep(30 * time.Minute)
				r.stop()
				wantFires(t, journal, c.want...)
			})
		})
	}
}
