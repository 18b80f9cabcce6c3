// Package runtest has events for the tests of package run and of its encodings.
package runtest

import (
	"encoding/json"
	"math/rand/v2"
	"time"

	"github.com/flowhost/flowhost/run"
)

// T0 is the time of the first event.
var T0 = time.Date(2026, 3, 29, 1, 2, 3, 456789, time.UTC)

// KeptRun is the prefix of the ids of runs in stored test data.
const KeptRun = "01KMVQZ3G0ABCDEFGHJKMNPQR"

// Every returns events of every kind, together with every field set. The ids of the
// runs of sub-flows and of continued runs begin with KeptRun.
func Every() []run.Event {
	failure := &run.Failure{
		Outcome: run.OutcomeFailed, Code: "no_stock", Message: "none left", Retryable: true,
		RetryAfter: 3 * time.Second, Details: json.RawMessage(`{"sku":"a<b"}`), Task: "price", At: "orders.hcl:14",
	}
	ref := run.TaskRef{Task: "price", Key: "eu"}
	schedule := run.ScheduleRef{Flow: "orders", Trigger: "night"}
	const backfill = "01KMVQZ3G0ABCDEFGHJKMNPQRT"
	id := run.NewID(T0)
	data := []run.EventData{
		&run.Defined{Definition: &run.Definition{
			Prefix: "billing/", Files: map[string][]byte{"a.hcl": []byte("flow \"a\" {}\n")},
			Vars: map[string]json.RawMessage{"n": json.RawMessage(`1`)}, Plugins: map[string]string{"./a.wasm": "sha256:00"},
		}},
		&run.Decided{Position: run.Position{Source: "triggers", Seq: 7}},
		&run.Decided{Position: run.Position{Source: "triggers", Seq: 8, At: T0.Add(-time.Second)}},
		&run.Submitted{
			Flow: "orders", Definition: "sha256:01", Concurrency: "c1",
			Trigger: run.Trigger{
				Kind: run.TriggerMessage, Name: "created", Time: T0, Subject: "orders.created",
				Headers: map[string][]string{"A": {"1", "2"}}, Payload: json.RawMessage(`{"total":12345678901234567890.10}`),
			},
			Params: map[string]json.RawMessage{"p": json.RawMessage(`"<&>"`)},
			Key:    "k1", RetryOf: run.NewID(T0),
		},
		&run.TaskReused{TaskRef: run.TaskRef{Task: "fetch"}, Output: json.RawMessage(`{"reused":true}`)},
		&run.Submitted{
			Flow: "bill", Definition: "sha256:01", Trigger: run.Trigger{Kind: run.TriggerTask, Time: T0},
			Parent: &run.Parent{Run: run.NewID(T0), TaskRef: ref, Depth: 2},
		},
		&run.Submitted{
			Flow: "orders", Definition: "sha256:01", Trigger: run.Trigger{Kind: run.TriggerManual, Time: T0}, RetryOf: run.NewID(T0), Attempt: 3,
			Continuation: json.RawMessage(`{"task":{"task":"price"}}`),
		},
		&run.Submitted{
			Flow: "bill", Definition: "sha256:01", Trigger: run.Trigger{Kind: run.TriggerTask, Time: T0}, RetryOf: run.NewID(T0),
			Parent: &run.Parent{Run: run.NewID(T0), TaskRef: ref, Depth: 2}, Continuation: json.RawMessage(`{}`),
		},
		&run.Submitted{Flow: "copies", Definition: "sha256:01", Trigger: run.Trigger{Kind: run.TriggerManual, Time: T0}, RetryOf: run.NewID(T0), Awaits: 3},
		&run.TaskReused{TaskRef: run.TaskRef{Task: "copy"}, State: run.Running, Items: json.RawMessage(`["a","b"]`)},
		&run.TaskReused{TaskRef: run.TaskRef{Task: "copy", Key: "1"}, State: run.Failed, Failure: failure},
		&run.Started{},
		&run.TaskExpanded{TaskRef: run.TaskRef{Task: "price"}, Items: json.RawMessage(`{"eu":1}`)},
		&run.WaitStarted{TaskRef: run.TaskRef{Task: "wait.approval"}, Subject: "orders.approved", Approval: "an order", Due: T0.Add(time.Hour), Deadline: T0.Add(time.Minute)},
		&run.WaitEnded{TaskRef: run.TaskRef{Task: "wait.approval"}, State: run.Failed, Payload: json.RawMessage(`{"approved":false}`), Failure: failure},
		&run.ChildStarted{TaskRef: run.TaskRef{Task: "price", Key: "us"}, Attempt: 1, Child: run.NewID(T0), Input: json.RawMessage(`{}`)},
		&run.AttemptStarted{TaskRef: ref, Attempt: 1, Module: "sha256:02", Function: "price", Input: json.RawMessage(`{"a":1}`), Config: json.RawMessage(`null`)},
		&run.AttemptFinished{TaskRef: ref, Attempt: 1, Outcome: run.OutcomeFailed, Failure: failure, RetryAt: T0.Add(time.Second), Duration: time.Millisecond},
		&run.AttemptFinished{TaskRef: ref, Attempt: 2, Outcome: run.OutcomeSucceeded, Output: json.RawMessage(`[1,"\u003c"]`), Duration: 1, Queued: time.Hour},
		&run.TaskEnded{TaskRef: run.TaskRef{Task: "review"}, State: run.Skipped, Failure: failure},
		&run.TaskEnded{TaskRef: run.TaskRef{Task: "audit"}, State: run.Skipped, Reason: "when is false"},
		&run.TaskCancelRequested{TaskRef: ref, Failure: failure},
		&run.CancelRequested{Failure: failure},
		&run.Finished{State: run.Failed, Output: json.RawMessage(`{}`), Failure: failure},
		&run.ScheduleSet{ScheduleRef: schedule, Spec: "cron 0 * * * * UTC", From: T0},
		&run.ScheduleAdvanced{ScheduleRef: schedule, Nominal: T0.Add(time.Hour), Dropped: 12, Reason: run.DropMisfire},
		&run.SchedulePaused{ScheduleRef: schedule, Reason: "upstream is down"},
		&run.ScheduleResumed{ScheduleRef: schedule},
		&run.BackfillStarted{ID: backfill, Schedule: schedule, Times: []time.Time{T0, T0.Add(-time.Hour)}, MaxActive: 3},
		&run.BackfillAdvanced{ID: backfill},
		&run.BackfillEnded{ID: backfill, Reason: "not needed"},
		&run.HostPaused{Reason: "a disk is replaced"},
		&run.HostResumed{},
		&run.HostPaused{Reason: "another disk"},
	}
	events := make([]run.Event, len(data))
	for i, d := range data {
		events[i] = run.Event{Run: id, At: T0.Add(time.Duration(i)), Data: d}
		submitted, ok := d.(*run.Submitted)
		switch {
		case !ok:
		case submitted.Awaits > 0:
			events[i].Run = KeptRun + "X"
		case submitted.Parent == nil && submitted.Continuation == nil:
		case submitted.Continuation == nil:
			events[i].Run = KeptRun + "U"
		case submitted.Parent == nil:
			events[i].Run = KeptRun + "V"
		default:
			events[i].Run = KeptRun + "W"
		}
	}
	return events
}

// Random returns a random event of a run or a schedule, with few tasks and ids, so that
// many events in a row fit the state.
func Random(rng *rand.Rand) run.EventData {
	task := string(rune('a' + rng.IntN(3)))
	if rng.IntN(8) == 0 {
		return branchEvent(rng, task)
	}
	outcomes := []run.Outcome{run.OutcomeSucceeded, run.OutcomeFailed, run.OutcomeLost, run.OutcomeCanceled}
	switch rng.IntN(17) {
	case 14, 15:
		return scheduleEvent(rng)
	case 16:
		if rng.IntN(2) > 0 {
			return &run.HostPaused{Reason: "r"}
		}
		return &run.HostResumed{}
	case 12:
		return &run.TaskReused{TaskRef: run.TaskRef{Task: task}, Output: json.RawMessage(`2`)}
	case 13:
		return &run.TaskCancelRequested{TaskRef: run.TaskRef{Task: task}, Failure: &run.Failure{Outcome: run.OutcomeCanceled}}
	case 0:
		kind := []run.TriggerKind{run.TriggerManual, run.TriggerSchedule, run.TriggerBackfill}[rng.IntN(3)]
		submitted := &run.Submitted{Flow: "f", Trigger: run.Trigger{Kind: kind, Name: "s"}, Awaits: max(0, rng.IntN(6)-3)}
		if kind == run.TriggerManual {
			submitted.Continuation = json.RawMessage(`{"task":{"task":"a"}}`)
		}
		return submitted
	case 1:
		return &run.Started{}
	case 2, 3, 4:
		return &run.AttemptStarted{TaskRef: run.TaskRef{Task: task}, Attempt: 1 + rng.IntN(4), Module: "sha256:m", Input: json.RawMessage(`1`)}
	case 5, 6:
		return ended(1+rng.IntN(4), task, outcomes[rng.IntN(4)], time.Time{})
	case 7, 8:
		return ended(1+rng.IntN(4), task, outcomes[1+rng.IntN(2)], T0.Add(time.Hour))
	case 9:
		return &run.TaskEnded{TaskRef: run.TaskRef{Task: task}, State: run.Skipped, Reason: []string{"", "when is false"}[rng.IntN(2)]}
	case 10:
		return &run.CancelRequested{Failure: &run.Failure{Outcome: run.OutcomeCanceled}}
	}
	if rng.IntN(20) > 0 {
		return &run.Started{}
	}
	return &run.Finished{State: []run.State{run.Succeeded, run.Failed, run.Canceled}[rng.IntN(3)]}
}

func branchEvent(rng *rand.Rand, task string) run.EventData {
	ref := run.TaskRef{Task: task}
	item := run.TaskRef{Task: task, Key: string(rune('0' + rng.IntN(2)))}
	switch rng.IntN(9) {
	case 0, 1:
		return &run.TaskExpanded{TaskRef: ref, Items: json.RawMessage(`[1,2]`)}
	case 2:
		return &run.AttemptStarted{TaskRef: item, Attempt: 1}
	case 3:
		return &run.AttemptFinished{TaskRef: item, Attempt: 1, Outcome: run.OutcomeSucceeded, Output: json.RawMessage(`3`)}
	case 4:
		return &run.TaskEnded{TaskRef: ref, State: run.Succeeded}
	case 5:
		return &run.WaitStarted{TaskRef: ref, Subject: "s", Approval: "a"}
	case 6:
		return &run.WaitEnded{TaskRef: ref, State: run.Succeeded, Payload: json.RawMessage(`1`)}
	case 7:
		return &run.ChildStarted{TaskRef: []run.TaskRef{ref, item}[rng.IntN(2)], Attempt: 1, Child: "c"}
	}
	return &run.TaskReused{TaskRef: ref, State: []run.State{run.Running, run.Failed, run.Skipped}[rng.IntN(3)], Items: json.RawMessage(`[]`)}
}

func scheduleEvent(rng *rand.Rand) run.EventData {
	schedule := run.ScheduleRef{Flow: "f", Trigger: "s"}
	at := T0.Add(time.Duration(rng.IntN(300)) * time.Second)
	backfill := run.ID(rune('A' + rng.IntN(3)))
	switch rng.IntN(7) {
	case 0:
		return &run.ScheduleSet{ScheduleRef: schedule, Spec: string(rune('x' + rng.IntN(3))), From: at}
	case 1, 2:
		return &run.ScheduleAdvanced{ScheduleRef: schedule, Nominal: at}
	case 3:
		return &run.SchedulePaused{ScheduleRef: schedule, Reason: "r"}
	case 4:
		return &run.ScheduleResumed{ScheduleRef: schedule}
	case 5:
		return &run.BackfillStarted{ID: backfill, Schedule: schedule, Times: []time.Time{at, at, at}, MaxActive: 2}
	}
	if rng.IntN(4) > 0 {
		return &run.BackfillAdvanced{ID: backfill}
	}
	return &run.BackfillEnded{ID: backfill}
}

func ended(n int, task string, o run.Outcome, retryAt time.Time) *run.AttemptFinished {
	f := &run.AttemptFinished{TaskRef: run.TaskRef{Task: task}, Attempt: n, Outcome: o, Duration: time.Millisecond, RetryAt: retryAt}
	if o != run.OutcomeSucceeded {
		f.Failure = &run.Failure{Outcome: o, Message: "no"}
	}
	return f
}
