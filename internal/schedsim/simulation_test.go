package schedsim

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/flowhost/flowhost/run"
)

var theOne = run.ScheduleRef{Flow: "f", Trigger: "s"}

func TestSchedules(t *testing.T) {
	t.Parallel()
	const s, m, h = time.Second, time.Minute, time.Hour
	outage := func(from, to time.Duration) []Outage { return []Outage{{epoch.Add(from), epoch.Add(to)}} }
	for _, c := range []struct {
		name     string
		schedule string
		lasts    time.Duration
		config   Config
		want     ScheduleReport
	}{
		{name: "the range has its beginning and not its end", schedule: `every = "10m"`, lasts: h, want: ScheduleReport{Times: 6, Runs: 6}},
		{name: "what ends when the next one fires has ended", schedule: `every = "30s"`, lasts: 5 * m,
			want: ScheduleReport{Times: 10, Runs: 10, Open: 1}},
		{name: "skip", schedule: `every = "10s"`, lasts: m, config: Config{Takes: 25 * s}, want: ScheduleReport{Times: 6, Runs: 2, Skipped: 4}},
		{name: "the time of a flow", schedule: `every = "10s"`, lasts: m, config: Config{Takes: s, FlowTakes: map[string]time.Duration{"f": 25 * s}},
			want: ScheduleReport{Times: 6, Runs: 2, Skipped: 4}},
		{name: "queue_one", schedule: "every = \"10s\"\noverlap = \"queue_one\"", lasts: m, config: Config{Takes: 25 * s},
			// 0–25, 10 from 25 to 50, 30 from 50 to 75, 50 waits; 20 and 40 are skipped
			want: ScheduleReport{Times: 6, Runs: 4, Skipped: 2, Waited: 3, MaxWait: 20 * s, Open: 2}},
		{name: "queue", schedule: "every = \"10s\"\noverlap = \"queue\"", lasts: m, config: Config{Takes: 25 * s},
			want: ScheduleReport{Times: 6, Runs: 6, Waited: 5, MaxWait: 30 * s, Open: 4}},
		{name: "a bounded queue", schedule: "every = \"10s\"\noverlap = \"queue\"\noverlap_max = 1", lasts: m, config: Config{Takes: 25 * s},
			want: ScheduleReport{Times: 6, Runs: 4, Skipped: 2, Waited: 3, MaxWait: 20 * s, Open: 2}},
		{name: "cancel_running", schedule: "every = \"10s\"\noverlap = \"cancel_running\"", lasts: m, config: Config{Takes: 25 * s},
			want: ScheduleReport{Times: 6, Runs: 6, Canceled: 5, Open: 1}},
		{name: "allow", schedule: "every = \"10s\"\noverlap = \"allow\"", lasts: m, config: Config{Takes: 25 * s}, want: ScheduleReport{Times: 6, Runs: 6, Open: 2}},
		{name: "node", schedule: "every = \"10s\"\noverlap = \"node\"", lasts: m, config: Config{Takes: 25 * s},
			want: ScheduleReport{Times: 6, Runs: 6, Waited: 5, MaxWait: 30 * s, Open: 4}},
		{name: "count", schedule: "every = \"10s\"\ncount = 3", lasts: h, config: Config{Takes: s}, want: ScheduleReport{Times: 3, Runs: 3}},
		{name: "an outage, the latest", schedule: `every = "5m"`, lasts: 2 * h, config: Config{Outages: outage(7*m, 67*m)},
			want: ScheduleReport{Times: 13, Runs: 13, Missed: 11, CaughtUp: 1}},
		{name: "outages that touch are one", schedule: `every = "5m"`, lasts: 2 * h,
			config: Config{Outages: append(outage(30*m, 67*m), outage(7*m, 30*m)...)}, want: ScheduleReport{Times: 13, Runs: 13, Missed: 11, CaughtUp: 1}},
		{name: "an outage, none", schedule: "every = \"5m\"\ncatch_up = \"none\"", lasts: 2 * h, config: Config{Outages: outage(7*m, 67*m)},
			want: ScheduleReport{Times: 12, Runs: 12, Missed: 12}},
		{name: "an outage, all", schedule: "every = \"5m\"\ncatch_up = \"all\"\noverlap = \"allow\"", lasts: 2 * h, config: Config{Outages: outage(7*m, 67*m)},
			want: ScheduleReport{Times: 24, Runs: 24, CaughtUp: 12}},
		{name: "a short outage", schedule: `every = "30s"`, lasts: 5 * m, config: Config{Takes: s, Outages: outage(59*s, 61*s)},
			want: ScheduleReport{Times: 10, Runs: 10, CaughtUp: 1}},
		{name: "down at the end", schedule: `every = "5m"`, lasts: h, config: Config{Outages: outage(29*m, 2*h)}, want: ScheduleReport{Times: 6, Runs: 6}},
		{name: "down before the beginning", schedule: `every = "5m"`, lasts: h, config: Config{Outages: outage(-2*h, -h)}, want: ScheduleReport{Times: 12, Runs: 12}},
		{name: "jitter beyond the end", schedule: "every = \"1h\"\njitter = \"59m\"\nsplay = \"hash\"", lasts: 1, want: ScheduleReport{}},
		{name: "down all the time", schedule: `every = "5m"`, lasts: h, config: Config{Outages: outage(0, h)}, want: ScheduleReport{}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			c.want.Schedule = theOne
			r := simulate(t, scheduled(c.schedule), c.lasts, c.config)
			if diff := cmp.Diff([]ScheduleReport{c.want}, r.Schedules); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestTriggersThatAreOffOrOfMessagesAreLeftOut(t *testing.T) {
	t.Parallel()
	r := simulate(t, `
flow "f" {
  trigger "schedule" "off" {
    every   = "1m"
    enabled = false
  }
  trigger "message" "m" { subject = "a.b" }
  task "a" { plugin = "./m.wasm" }
}`, time.Hour, Config{})
	if len(r.Schedules) != 0 {
		t.Errorf("%+v", r.Schedules)
	}
}

// A limit of the flow counts for all its schedules, by the value of its key.
func TestConcurrency(t *testing.T) {
	t.Parallel()
	source := `
flow "f" {
  param "region" { type = string }
  concurrency {
    limit = 1
    key   = param.region
  }
  trigger "schedule" "a" {
    every  = "1m"
    params = { region = "eu" }
  }
  trigger "schedule" "b" {
    every  = "1m"
    params = { region = %q }
  }
  task "a" { plugin = "./m.wasm" }
}`
	for region, want := range map[string]int{"eu": 1, "us": 0} {
		r := simulate(t, fmt.Sprintf(source, region), time.Minute, Config{Takes: 20 * time.Second})
		if r.Schedules[1].Waited != want || r.Schedules[1].MaxWait != time.Duration(want)*20*time.Second {
			t.Errorf("%s beside eu: %+v", region, r.Schedules[1])
		}
	}
}

func TestRejected(t *testing.T) {
	t.Parallel()
	r := simulate(t, `
flow "f" {
  param "region" { type = string }
  trigger "schedule" "s" {
    every  = "1m"
    params = { region = trigger.headers["region"][0] }
  }
  task "a" { plugin = "./m.wasm" }
}`, time.Hour, Config{})
	if got := r.Schedules[0]; got.Times != 60 || got.Rejected != 60 || got.Runs != 0 || !strings.Contains(got.Reason, ": params: ") {
		t.Errorf("%+v", got)
	}
}

func TestPool(t *testing.T) {
	t.Parallel()
	// At each minute two runs of two tasks of 10 s beside each other, on three workers,
	// once together with another task.
	source := `
flow "f" {
  trigger "schedule" "s" { every = "1m" }
  trigger "schedule" "again" { every = "1m" }
  task "a" { plugin = "./m.wasm" }
  task "b" { plugin = "./m.wasm" }
}
flow "g" {
  trigger "schedule" "s" {
    every = "1m"
    count = 1
  }
  task "a" { plugin = "./m.wasm" }
}`
	r := simulate(t, source, 10*time.Minute, Config{Takes: 10 * time.Second, Workers: 3})
	want := Pool{
		Workers: 3, Used: 410, MostRunning: 3, AllBusy: 100 * time.Second, MostWaiting: 2, MostWaitingAt: epoch,
		LongestWait: 10 * time.Second, LongestWaitOf: run.ScheduleRef{Flow: "f", Trigger: "again"}, LongestWaitAt: epoch,
	}
	if diff := cmp.Diff(want, r.Pool); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if r.MostOpen != 3 {
		t.Errorf("%d runs at once", r.MostOpen)
	}
}

// A flow that is alone has all workers.
func TestWhoeverIsAloneGetsEverything(t *testing.T) {
	t.Parallel()
	r := simulate(t, scheduled("every = \"1s\"\noverlap = \"allow\""), time.Minute, Config{Workers: 8})
	if r.Pool.MostRunning != 8 || r.Pool.AllBusy == 0 || r.Pool.MostWaiting == 0 {
		t.Errorf("%+v", r.Pool)
	}
}

// Tasks wait for workers, not for the host: an outage is no saturation.
func TestOutagesAreNoSaturation(t *testing.T) {
	t.Parallel()
	r := simulate(t, `
flow "f" {
  trigger "schedule" "first" { at = "2000-01-01T00:00:01Z" }
  trigger "schedule" "second" { at = "2000-01-01T00:00:02Z" }
  task "a" { plugin = "./m.wasm" }
}`,
		2*time.Hour, Config{Takes: 10 * time.Second, Workers: 1, Outages: []Outage{{epoch.Add(3 * time.Second), epoch.Add(time.Hour)}}})
	// The run that was cut off is made again, behind the other one.
	if p := r.Pool; p.LongestWait != 10*time.Second || p.AllBusy != 22*time.Second || p.Used != 22 || !p.LongestWaitAt.Equal(epoch.Add(time.Hour)) {
		t.Errorf("%+v", p)
	}
}

func TestHerds(t *testing.T) {
	t.Parallel()
	source := strings.Builder{}
	for i := range 7 {
		fmt.Fprintf(&source, "%s\n", strings.ReplaceAll(scheduled(`cron = "0 * * * *"`), `"f"`, fmt.Sprintf("%q", fmt.Sprint("f", i))))
	}
	source.WriteString(strings.ReplaceAll(scheduled("cron = \"0 */2 * * *\"\njitter = \"30s\"\nsplay = \"hash\""), `"f"`, `"g"`))
	source.WriteString(strings.ReplaceAll(scheduled(`every = "20s"`), `"f"`, `"h"`))
	r := simulate(t, source.String(), 4*time.Hour, Config{Takes: time.Second})
	if len(r.Herds) != 3 {
		t.Fatalf("%d kinds: %+v", len(r.Herds), r.Herds)
	}
	for i, want := range []Herd{
		{Minute: epoch, Minutes: 2, Runs: 11}, // 7 hourly ones, g, 3 of h
		{Minute: epoch.Add(time.Hour), Minutes: 2, Runs: 10},
		{Minute: epoch.Add(time.Minute), Minutes: 236, Runs: 3},
	} {
		got := r.Herds[i]
		if got.Minute != want.Minute || got.Minutes != want.Minutes || got.Runs != want.Runs {
			t.Errorf("kind %d: %+v, want %+v", i, got, want)
		}
	}
	shares := r.Herds[0].Schedules
	if len(shares) != 9 || shares[8].Runs != 3 || shares[0].Schedule.Flow != "f0" {
		t.Errorf("shares of the largest: %+v", shares)
	}
}

func TestJitterIsSuggested(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name      string
		schedules int
		schedule  string
		config    Config
		want      time.Duration
	}{
		{"as many minutes as runs", 4, `cron = "0 * * * *"`, Config{}, 5 * time.Minute},
		{"no more than half the wait", 20, `every = "11m"`, Config{}, 5 * time.Minute},
		{"too often", 20, `every = "1m"`, Config{}, 0},
		{"one-shots", 20, `at = "2000-01-01T00:00:00Z"`, Config{}, 30 * time.Minute},
		{"one schedule", 1, "every = \"10s\"\noverlap = \"allow\"", Config{}, 0},
		{"has one", 4, "cron = \"0 * * * *\"\njitter = \"30s\"", Config{}, 0},
		{"after an outage", 4, `cron = "0 * * * *"`, Config{Outages: []Outage{{epoch, epoch.Add(time.Minute)}}}, 0},
	} {
		var source strings.Builder
		for i := range c.schedules {
			source.WriteString(strings.ReplaceAll(scheduled(c.schedule), `"f"`, fmt.Sprintf("%q", fmt.Sprint("f", i))))
		}
		r := simulate(t, source.String(), 30*time.Minute, c.config)
		if len(r.Herds) == 0 || r.Herds[0].Jitter != c.want {
			t.Errorf("%s: %+v, want a jitter of %s", c.name, r.Herds, c.want)
		}
	}
}

// However many kinds of minutes there are, the largest is found.
func TestHerdsAreBounded(t *testing.T) {
	t.Parallel()
	var h herds
	schedules := make([]*schedule, 4*maxKept)
	for i := range schedules {
		schedules[i] = &schedule{number: i, stats: &ScheduleReport{Schedule: run.ScheduleRef{Trigger: fmt.Sprint(i)}}}
	}
	for i, sc := range schedules {
		for range 2 + i%7 {
			h.note(epoch.Add(time.Duration(i)*time.Minute), sc, true)
		}
		if len(h.kinds) > maxKept {
			t.Fatalf("%d kinds are kept", len(h.kinds))
		}
	}
	for _, herd := range h.top() {
		if herd.Runs != 8 || herd.Late != 8 {
			t.Errorf("%+v", herd)
		}
	}
}

func TestTooMany(t *testing.T) {
	t.Parallel()
	set := load(t, scheduled(`every = "1s"`)+strings.ReplaceAll(scheduled(`every = "10ms"`), `"f"`, `"g"`))
	_, err := Run(t.Context(), Config{Flows: set.Flows, From: epoch, To: epoch.AddDate(1, 0, 0), MaxFires: 1000})
	var many *TooManyError
	if !errors.As(err, &many) || many.Schedule.Flow != "g" || many.Limit != 1000 || many.Times < 980 || many.Reached.Sub(epoch) > 10*time.Second {
		t.Fatalf("%+v", err)
	}
	if !strings.Contains(err.Error(), "more than 1000 fires") || !strings.Contains(err.Error(), "g/s fires most") {
		t.Error(err)
	}
}

func TestEndsWithItsContext(t *testing.T) {
	t.Parallel()
	ctx, stop := context.WithCancel(t.Context())
	stop()
	if _, err := Run(ctx, Config{Flows: load(t, scheduled(`every = "1s"`)).Flows, From: epoch, To: epoch.Add(time.Hour)}); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

func TestNotes(t *testing.T) {
	t.Parallel()
	const second = "  task \"b\" {\n    plugin = \"./m.wasm\"\n    after = [task.a]\n    timeout = \"10m\"\n  }\n"
	for _, c := range []struct {
		rest  string
		takes time.Duration
		want  string
	}{
		{"", 5 * time.Minute, ""},
		{"", 6 * time.Minute, "flow f: task a would take 6m0s and be stopped by its timeout of 5m0s, the default"},
		{second, 10 * time.Minute, ""},
		{"  timeout = \"1m\"\n", 2 * time.Minute, "flow f: a run would be stopped by its timeout of 1m0s"},
	} {
		source := scheduled("every = \"1h\"\n}\ntrigger \"schedule\" \"other\" {\nevery = \"2h\"")
		source = strings.TrimSuffix(source, "}\n") + c.rest + "}\n"
		if r := simulate(t, source, time.Hour, Config{Takes: c.takes}); strings.Join(r.Notes, "\n") != c.want {
			t.Errorf("%q and %s: %q, want %q", c.rest, c.takes, r.Notes, c.want)
		}
	}
}

// A host takes so many runs at once; so many are no burden either.
func TestVeryManyOpenRuns(t *testing.T) {
	t.Parallel()
	r := simulate(t, scheduled("every = \"1s\"\noverlap = \"allow\""), 30*time.Hour, Config{Takes: 28 * time.Hour})
	if r.MostOpen != 28*3600 || r.Schedules[0].Open != 28*3600 || r.Schedules[0].Runs != 30*3600 {
		t.Errorf("%+v, %d open at once", r.Schedules, r.MostOpen)
	}
	if len(r.Notes) == 0 || r.Notes[0] != "100800 runs are open at once, and a host takes no new ones beyond 100000" {
		t.Errorf("notes: %q", r.Notes)
	}
}

// The same again gives the same.
func TestDeterministic(t *testing.T) {
	t.Parallel()
	var source strings.Builder
	for i := range 40 {
		source.WriteString(strings.ReplaceAll(scheduled("cron = \"*/7 * * * *\"\njitter = \"3m\"\noverlap = \"queue\"\ntimezone = \"Europe/Berlin\""), `"f"`, fmt.Sprintf("%q", fmt.Sprint("f", i))))
	}
	c := Config{Workers: 3, Takes: 40 * time.Second, Outages: []Outage{{epoch.Add(time.Hour), epoch.Add(2 * time.Hour)}}}
	first := simulate(t, source.String(), 24*time.Hour, c)
	if diff := cmp.Diff(first, simulate(t, source.String(), 24*time.Hour, c)); diff != "" {
		t.Errorf("(-first +again):\n%s", diff)
	}
}

func TestChangesInTheRange(t *testing.T) {
	t.Parallel()
	set := load(t, scheduled("cron = \"30 2 * * *\"\ntimezone = \"America/New_York\"\n}\n"+
		"trigger \"schedule\" \"other\" {\ncron = \"30 2 * * *\"\ntimezone = \"Europe/Berlin\"\n}\n"+
		"trigger \"schedule\" \"utc\" {\nevery = \"24h\""))
	r, err := Run(t.Context(), Config{Flows: set.Flows, From: at(t, "2026-03-08T07:00:00Z", "UTC"), To: at(t, "2026-11-01T06:00:00Z", "UTC")})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, c := range r.Changes {
		for _, e := range c.Effects {
			got = append(got, c.Zone+" "+c.At.Format(time.RFC3339)+" "+e.Schedule.String()+" "+string(e.Kind))
		}
	}
	want := []string{
		"America/New_York 2026-03-08T03:00:00-04:00 f/s replaced", "Europe/Berlin 2026-03-29T03:00:00+02:00 f/other replaced",
		"Europe/Berlin 2026-10-25T02:00:00+01:00 f/other once", // New York's lies at the end
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
