package render

import (
	"bytes"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/flowhost/flowhost/run"
)

func TestTaskWaits(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	started := time.Now().Add(time.Hour) // by the clock of another machine: for 0s
	ready := func(w run.WaitsFor) run.TaskRecord {
		return run.TaskRecord{Task: "t", State: run.Ready, Attempts: 1, Due: &at, WaitsFor: &w}
	}
	running := func(w run.WaitsFor) run.TaskRecord {
		return run.TaskRecord{Task: "t", State: run.Running, Attempts: 1, StartedAt: &started, WaitsFor: &w}
	}
	waiting := func(w run.WaitsFor) run.TaskRecord {
		return run.TaskRecord{Task: "t", State: run.Waiting, WaitsFor: &w}
	}
	items := running(run.WaitsFor{Reason: run.WaitMaxParallel, InUse: 4, Max: 4})
	items.Attempts, items.Counts = 0, &run.ItemCounts{Total: 9, Running: 4, Waiting: 5}
	for want, task := range map[string]run.TaskRecord{
		"task t waiting (for price)":                                                                                             waiting(run.WaitsFor{Reason: run.WaitUpstream, Tasks: []string{"price"}}),
		"task t waiting (for price and tax)":                                                                                     waiting(run.WaitsFor{Reason: run.WaitUpstream, Tasks: []string{"price", "tax"}}),
		"task t waiting (for price, wait paid, group g and 4 more)":                                                              waiting(run.WaitsFor{Reason: run.WaitUpstream, Tasks: []string{"price", "wait.paid", "group.g"}, More: 4}),
		"task t waiting (for limit db: 4 of 4 in use)":                                                                           waiting(run.WaitsFor{Reason: run.WaitLimit, Limit: "db", InUse: 4, Max: 4}),
		"task t waiting (for limit api: 10/s, next start at " + LocalTime(at) + ")":                                              waiting(run.WaitsFor{Reason: run.WaitRate, Limit: "api", Rate: "10/s", Next: at}),
		"task t waiting (for the operator: the host is paused, or has 0 workers)":                                                waiting(run.WaitsFor{Reason: run.WaitPaused}),
		"task t waiting (for the end of an attempt: 512 of 512 are in flight)":                                                   waiting(run.WaitsFor{Reason: run.WaitInFlight, InUse: 512, Max: 512}),
		"task t waiting (for a slot of group g: 2 of 2 in use)":                                                                  waiting(run.WaitsFor{Reason: run.WaitGroup, Group: "g", InUse: 2, Max: 2}),
		"task t waiting (for the same task of run R, an earlier one of its schedule)":                                            waiting(run.WaitsFor{Reason: run.WaitEarlierRun, Run: "R"}),
		"task t waiting (for the next start of the host, which is stopping)":                                                     waiting(run.WaitsFor{Reason: run.WaitStopping}),
		"task t waiting (for luck)":                                                                                              waiting(run.WaitsFor{Reason: "luck"}),
		"task t ready (1 attempt, waits for a worker: 8 of 8 compute)":                                                           ready(run.WaitsFor{Reason: run.WaitWorker, InUse: 8, Max: 8}),
		"task t ready (1 attempt, next attempt at " + LocalTime(at) + ")":                                                        ready(run.WaitsFor{Reason: run.WaitRetry}),
		"task t running (1 attempt, for 0s, waits for memory)":                                                                   running(run.WaitsFor{Reason: run.WaitMemory}),
		"task t running (1 attempt, for 0s, waits for its module to be prepared)":                                                running(run.WaitsFor{Reason: run.WaitModule}),
		"task t running (1 attempt, for 0s, asleep)":                                                                             running(run.WaitsFor{Reason: run.WaitSleep}),
		"task t running (0 of 9 items done; 4 running, 5 waiting; for 0s; items wait for a slot of max_parallel: 4 of 4 in use)": items,
	} {
		var out bytes.Buffer
		if got := NewTerminal(&out, nil).taskLine(&task); got != want {
			t.Errorf("%s\nwant\n%s", got, want)
		}
	}
}

func TestRunWaits(t *testing.T) {
	t.Parallel()
	for want, w := range map[string]run.WaitsFor{
		"waits for a slot of the flow's concurrency: 2 of 2 in use":               {Reason: run.WaitConcurrency, InUse: 2, Max: 2},
		"waits for a slot of the flow's concurrency: 1 of 1 in use, next in line": {Reason: run.WaitConcurrency, InUse: 1, Max: 1, Position: 1},
		"waits for a slot of the flow's concurrency, 2nd in line behind run R":    {Reason: run.WaitConcurrency, InUse: 1, Max: 1, Position: 2, Run: "R"},
		"waits for a slot of the flow's concurrency for key \\x1b: 1 of 1 in use": {Reason: run.WaitConcurrency, Key: "\x1b", InUse: 1, Max: 1},
		"waits for run R, an earlier one of its schedule":                         {Reason: run.WaitEarlierRun, Run: "R"},
		"waits for run R, an earlier one of its schedule, next in line":           {Reason: run.WaitEarlierRun, Run: "R", Position: 1},
		"waits for run R, an earlier one of its schedule, 11th in line":           {Reason: run.WaitEarlierRun, Run: "R", Position: 11},
		"waits for the next start of the host, which is stopping":                 {Reason: run.WaitStopping},
	} {
		if got := RunWaits(&w); got != want {
			t.Errorf("%s\nwant\n%s", got, want)
		}
	}
	for n, want := range map[int]string{1: "1st", 2: "2nd", 3: "3rd", 4: "4th", 11: "11th", 12: "12th", 13: "13th", 21: "21st", 102: "102nd", 111: "111th", 120: "120th"} {
		if got := ordinal(n); got != want {
			t.Errorf("%d is the %s, want %s", n, got, want)
		}
	}
}

// How long attempts waited for what others had is shown when it was long.
func TestShowQueued(t *testing.T) {
	t.Parallel()
	took := 4500.0
	for queued, want := range map[float64]string{
		99: "task t succeeded (1 attempt, 4.5s)", 3200: "task t succeeded (1 attempt, 4.5s, waited 3.2s for others)",
	} {
		var out bytes.Buffer
		if got := NewTerminal(&out, nil).taskLine(&run.TaskRecord{Task: "t", State: run.Succeeded, Attempts: 1, DurationMS: &took, QueuedMS: queued}); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
}

// A progress shows each reason once, and none that needs no line.
func TestShowWaits(t *testing.T) {
	t.Parallel()
	key := "k"
	limit := func(inUse int) *run.WaitsFor {
		return &run.WaitsFor{Reason: run.WaitLimit, Limit: "db", InUse: inUse, Max: 4}
	}
	record := func(inUse int) *run.Record {
		r := &run.Record{Run: "R", State: run.Pending, WaitsFor: &run.WaitsFor{Reason: run.WaitEarlierRun, Run: "Q"}, Tasks: []run.TaskRecord{
			{Task: "a", State: run.Waiting, WaitsFor: limit(inUse)},
			{Task: "b", State: run.Waiting, WaitsFor: &run.WaitsFor{Reason: run.WaitUpstream, Tasks: []string{"a"}}},
			{Task: "c", State: run.Running, WaitsFor: limit(inUse), Counts: &run.ItemCounts{Total: 11}},
		}}
		for range 11 {
			r.Tasks = append(r.Tasks, run.TaskRecord{Task: "c", Key: &key, State: run.Running, WaitsFor: &run.WaitsFor{Reason: run.WaitMemory}})
		}
		return r
	}
	var out bytes.Buffer
	p, err := NewProgress(NewTerminal(&out, nil), "plain")
	if err != nil {
		t.Fatal(err)
	}
	diff := RecordDiff{Progress: p}
	diff.ShowWaits(record(4))
	diff.ShowWaits(record(5))
	want := `run R: pending (waits for run Q, an earlier one of its schedule)
a: waiting (for limit db: 4 of 4 in use)
c: running (items wait for limit db: 4 of 4 in use)
`
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Error(diff)
	}
}
