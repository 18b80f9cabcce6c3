package run

import (
	"encoding/json"
	"errors"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// story applies events to a fresh shard and returns the run.
func story(t *testing.T, data ...EventData) (*Shard, *Run) {
	t.Helper()
	s := NewShard()
	for i, d := range data {
		if _, err := s.Apply(Event{Run: "r", At: t0.Add(time.Duration(i) * time.Second), Data: d}); err != nil {
			t.Fatalf("event %d: %v", i, err)
		}
	}
	return s, s.Runs["r"]
}

func attempt(n int, task string) *AttemptStarted {
	return &AttemptStarted{TaskRef: TaskRef{Task: task}, Attempt: n, Module: "sha256:m", Input: json.RawMessage(`1`)}
}

func ended(n int, task string, o Outcome) *AttemptFinished {
	f := &AttemptFinished{TaskRef: TaskRef{Task: task}, Attempt: n, Outcome: o, Duration: time.Millisecond}
	if o != OutcomeSucceeded {
		f.Failure = &Failure{Outcome: o, Message: "no"}
	}
	return f
}

func retried(n int, task string, o Outcome) *AttemptFinished {
	f := ended(n, task, o)
	f.RetryAt = t0.Add(time.Hour)
	return f
}

func TestRetryReturnsToReady(t *testing.T) {
	t.Parallel()
	_, r := story(t, &Submitted{Flow: "f"}, &Started{}, attempt(1, "a"), retried(1, "a", OutcomeFailed))
	task := r.Task(TaskRef{Task: "a"})
	if task.State != Ready || !task.Due.Equal(t0.Add(time.Hour)) {
		t.Fatalf("after a failed attempt that may be retried: %s due %s", task.State, task.Due)
	}
	if task.Outcome != OutcomeFailed || task.Failure == nil {
		t.Errorf("the last outcome is not kept: %q %v", task.Outcome, task.Failure)
	}
}

func TestSuccessClearsTheFailureOfEarlierAttempts(t *testing.T) {
	t.Parallel()
	done := ended(2, "a", OutcomeSucceeded)
	done.Output = json.RawMessage(`{"ok":true}`)
	_, r := story(t, &Submitted{Flow: "f"}, &Started{}, attempt(1, "a"), retried(1, "a", OutcomeLost), attempt(2, "a"), done)
	task := r.Task(TaskRef{Task: "a"})
	if task.State != Succeeded || task.Failure != nil || string(task.Output) != `{"ok":true}` {
		t.Errorf("task is %s with failure %v and output %s", task.State, task.Failure, task.Output)
	}
	if task.Attempts != 2 || task.Lost != 1 || task.Busy != 2*time.Millisecond {
		t.Errorf("%d attempts, %d lost, busy %s", task.Attempts, task.Lost, task.Busy)
	}
	if want := t0.Add(2 * time.Second); !task.StartedAt.Equal(want) {
		t.Errorf("started at %s, want the first attempt's start %s", task.StartedAt, want)
	}
}

func TestApplyRefusesWhatCannotFollow(t *testing.T) {
	t.Parallel()
	submitted, started := &Submitted{Flow: "f"}, &Started{}
	running := []EventData{submitted, started, attempt(1, "a")}
	cases := map[string]struct {
		before []EventData
		event  EventData
	}{
		"start of an unknown run":         {nil, started},
		"second submit":                   {[]EventData{submitted}, submitted},
		"second start":                    {[]EventData{submitted, started}, started},
		"attempt before the start":        {[]EventData{submitted}, attempt(1, "a")},
		"attempt 2 first":                 {[]EventData{submitted, started}, attempt(2, "a")},
		"attempt while one is under way":  {running, attempt(2, "a")},
		"end of an unknown attempt":       {[]EventData{submitted, started}, ended(1, "a", OutcomeSucceeded)},
		"end of another attempt":          {running, ended(2, "a", OutcomeSucceeded)},
		"second end":                      {append(running[:3:3], ended(1, "a", OutcomeSucceeded)), ended(1, "a", OutcomeFailed)},
		"attempt after the end":           {append(running[:3:3], ended(1, "a", OutcomeFailed)), attempt(2, "a")},
		"skip of a running task":          {running, &TaskEnded{TaskRef: TaskRef{Task: "a"}, State: Skipped}},
		"end in a state that is none":     {[]EventData{submitted, started}, &TaskEnded{TaskRef: TaskRef{Task: "a"}, State: Ready}},
		"finish while a task runs":        {running, &Finished{State: Succeeded}},
		"finish as skipped":               {[]EventData{submitted, started}, &Finished{State: Skipped}},
		"event after the finish":          {[]EventData{submitted, started, &Finished{State: Succeeded}}, &CancelRequested{}},
		"reuse after an attempt":          {running, &TaskReused{TaskRef: TaskRef{Task: "a"}}},
		"second cancel of a task":         {append(running[:3:3], &TaskCancelRequested{TaskRef{Task: "a"}, new(Failure)}), &TaskCancelRequested{TaskRef: TaskRef{Task: "a"}}},
		"attempt of a canceled task":      {[]EventData{submitted, started, &TaskCancelRequested{TaskRef{Task: "a"}, new(Failure)}}, attempt(1, "a")},
		"second cancel":                   {[]EventData{submitted, &CancelRequested{Failure: new(Failure)}}, &CancelRequested{}},
		"watermark that does not move":    {[]EventData{&Decided{Position{Source: "s", Seq: 3}}}, &Decided{Position{Source: "s", Seq: 3}}},
		"watermark that moves back":       {[]EventData{&Decided{Position{Source: "s", Seq: 3, At: t0}}}, &Decided{Position{Source: "s", Seq: 2, At: t0}}},
		"definition without its contents": {nil, &Defined{}},
		"no data":                         {nil, nil},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, r := story(t, c.before...)
			var before string
			if r != nil {
				before = recordJSON(t, r)
			}
			_, err := s.Apply(Event{Run: "r", At: t0, Data: c.event})
			if transition := (*TransitionError)(nil); !errors.As(err, &transition) {
				t.Fatalf("error %v, want a *TransitionError", err)
			}
			if r != nil && recordJSON(t, r) != before {
				t.Errorf("the refused event changed the run to %s", recordJSON(t, r))
			}
		})
	}
}

func TestWatermarksAndDefinitions(t *testing.T) {
	t.Parallel()
	d := &Definition{Files: map[string][]byte{"a.hcl": []byte("x")}}
	s, _ := story(t, &Decided{Position{Source: "a", Seq: 3}}, &Decided{Position{Source: "b", Seq: 1}}, &Decided{Position{Source: "a", Seq: 9}}, &Defined{d})
	if s.Watermarks["a"].Seq != 9 || s.Watermarks["b"].Seq != 1 {
		t.Errorf("watermarks %v", s.Watermarks)
	}
	if s.Definitions[d.Digest()] != d {
		t.Errorf("the definition is not found under its digest")
	}
}

// A source that has lost its end gives numbers again. What it stored since is later
// than all that was decided, and nothing of that comes again, whatever clocks do.
func TestPositionsOfSourceThatLostItsEnd(t *testing.T) {
	t.Parallel()
	at := func(seq uint64, seconds int) Position {
		return Position{Source: "s", Seq: seq, At: t0.Add(time.Duration(seconds) * time.Second)}
	}
	s, _ := story(t, &Decided{at(7, 10)}, &Decided{at(9, 20)}, &Decided{at(4, 30)}, &Decided{at(5, 25)})
	if diff := cmp.Diff(at(5, 30), s.Watermarks["s"]); diff != "" {
		t.Errorf("watermark (-want +got):\n%s", diff)
	}
	for p, want := range map[Position]bool{
		at(3, 20): false, at(4, 30): false, at(5, 25): false, at(5, 30): false,
		at(6, 1): true, at(4, 31): true, {Source: "s", Seq: 6}: true, {Source: "s", Seq: 5}: false,
	} {
		if got := p.After(s.Watermarks["s"]); got != want {
			t.Errorf("%+v is after the watermark: %t", p, got)
		}
	}
	if at(3, 40).After(Position{Source: "s", Seq: 3}) {
		t.Error("a time makes something of it without a time of the watermark")
	}
}

// Random events, most of them out of place: whatever is accepted keeps the
// invariants, and folding the accepted ones again gives the same state.
func TestFoldIsDeterministic(t *testing.T) {
	t.Parallel()
	for seed := range uint64(200) {
		rng := rand.New(rand.NewPCG(seed, 1))
		s := NewShard()
		var accepted []Event
		for i := range 200 {
			e := Event{Run: "r", At: t0.Add(time.Duration(i)), Data: randomEvent(rng)}
			if _, err := s.Apply(e); err == nil {
				accepted = append(accepted, e)
				checkInvariants(t, seed, s.Runs["r"])
			}
		}
		again := NewShard()
		for _, e := range accepted {
			if _, err := again.Apply(e); err != nil {
				t.Fatalf("seed %d: an accepted event is refused in the second fold: %v", seed, err)
			}
		}
		if a, b := recordJSON(t, s.Runs["r"]), recordJSON(t, again.Runs["r"]); a != b {
			t.Fatalf("seed %d: the folds differ:\n%s\n%s", seed, a, b)
		}
	}
}

// A run that takes over more than one commit holds does not start before all of it is
// there, also when a snapshot comes in between.
func TestARunAwaitsWhatItTakesOver(t *testing.T) {
	t.Parallel()
	s, id := NewShard(), NewID(t0)
	apply := func(data EventData) error {
		_, err := s.Apply(Event{Run: id, At: t0, Data: data})
		return err
	}
	if err := apply(&Submitted{Flow: "f", Awaits: -1}); err == nil {
		t.Error("a run awaits less than nothing")
	}
	if err := apply(&Submitted{Flow: "f", Awaits: 2}); err != nil {
		t.Fatal(err)
	}
	for _, task := range []string{"a", "b"} {
		if err := apply(&Started{}); err == nil {
			t.Errorf("the run starts before task %s is taken over", task)
		}
		if err := apply(&TaskReused{TaskRef: TaskRef{Task: task}}); err != nil {
			t.Fatal(err)
		}
		restored, _, err := DecodeSnapshot(sealed(t, s, 3))
		if err != nil {
			t.Fatal(err)
		}
		s = restored
	}
	if err := apply(&Started{}); err != nil {
		t.Error(err)
	}
}

func randomEvent(rng *rand.Rand) EventData {
	task := string(rune('a' + rng.IntN(3)))
	if rng.IntN(8) == 0 {
		return randomBranchEvent(rng, task)
	}
	outcomes := []Outcome{OutcomeSucceeded, OutcomeFailed, OutcomeLost, OutcomeCanceled}
	switch rng.IntN(16) {
	case 14, 15:
		return randomScheduleEvent(rng)
	case 12:
		return &TaskReused{TaskRef: TaskRef{Task: task}, Output: json.RawMessage(`2`)}
	case 13:
		return &TaskCancelRequested{TaskRef: TaskRef{Task: task}, Failure: &Failure{Outcome: OutcomeCanceled}}
	case 0:
		kind := []TriggerKind{TriggerManual, TriggerSchedule, TriggerBackfill}[rng.IntN(3)]
		submitted := &Submitted{Flow: "f", Trigger: Trigger{Kind: kind, Name: "s"}, Awaits: max(0, rng.IntN(6)-3)}
		if kind == TriggerManual {
			submitted.Continuation = json.RawMessage(`{"task":{"task":"a"}}`)
		}
		return submitted
	case 1:
		return &Started{}
	case 2, 3, 4:
		return attempt(1+rng.IntN(4), task)
	case 5, 6:
		return ended(1+rng.IntN(4), task, outcomes[rng.IntN(4)])
	case 7, 8:
		return retried(1+rng.IntN(4), task, outcomes[1+rng.IntN(2)])
	case 9:
		return &TaskEnded{TaskRef: TaskRef{Task: task}, State: Skipped}
	case 10:
		return &CancelRequested{Failure: &Failure{Outcome: OutcomeCanceled}}
	}
	if rng.IntN(20) > 0 {
		return &Started{}
	}
	return &Finished{State: []State{Succeeded, Failed, Canceled}[rng.IntN(3)]}
}

func randomBranchEvent(rng *rand.Rand, task string) EventData {
	ref := TaskRef{Task: task}
	item := TaskRef{Task: task, Key: string(rune('0' + rng.IntN(2)))}
	switch rng.IntN(9) {
	case 0, 1:
		return &TaskExpanded{TaskRef: ref, Items: json.RawMessage(`[1,2]`)}
	case 2:
		return &AttemptStarted{TaskRef: item, Attempt: 1}
	case 3:
		return &AttemptFinished{TaskRef: item, Attempt: 1, Outcome: OutcomeSucceeded, Output: json.RawMessage(`3`)}
	case 4:
		return &TaskEnded{TaskRef: ref, State: Succeeded}
	case 5:
		return &WaitStarted{TaskRef: ref, Subject: "s", Approval: "a"}
	case 6:
		return &WaitEnded{TaskRef: ref, State: Succeeded, Payload: json.RawMessage(`1`)}
	case 7:
		return &ChildStarted{TaskRef: []TaskRef{ref, item}[rng.IntN(2)], Attempt: 1, Child: "c"}
	}
	return &TaskReused{TaskRef: ref, State: []State{Running, Failed, Skipped}[rng.IntN(3)], Items: json.RawMessage(`[]`)}
}

func randomScheduleEvent(rng *rand.Rand) EventData {
	schedule := ScheduleRef{Flow: "f", Trigger: "s"}
	at := t0.Add(time.Duration(rng.IntN(300)) * time.Second)
	backfill := ID(rune('A' + rng.IntN(3)))
	switch rng.IntN(7) {
	case 0:
		return &ScheduleSet{ScheduleRef: schedule, Spec: string(rune('x' + rng.IntN(3))), From: at}
	case 1, 2:
		return &ScheduleAdvanced{ScheduleRef: schedule, Nominal: at}
	case 3:
		return &SchedulePaused{ScheduleRef: schedule, Reason: "r"}
	case 4:
		return &ScheduleResumed{ScheduleRef: schedule}
	case 5:
		return &BackfillStarted{ID: backfill, Schedule: schedule, Times: []time.Time{at, at, at}, MaxActive: 2}
	}
	if rng.IntN(4) > 0 {
		return &BackfillAdvanced{ID: backfill}
	}
	return &BackfillEnded{ID: backfill}
}

func checkInvariants(t *testing.T, seed uint64, r *Run) {
	t.Helper()
	if r == nil {
		return
	}
	for _, task := range r.Tasks {
		switch {
		case task.Lost > task.Attempts:
			t.Fatalf("seed %d: %d lost of %d attempts", seed, task.Lost, task.Attempts)
		case task.State.Done() == task.FinishedAt.IsZero():
			t.Fatalf("seed %d: task is %s with finish time %s", seed, task.State, task.FinishedAt)
		case (task.State == Ready) == task.Due.IsZero():
			t.Fatalf("seed %d: task is %s and due %s", seed, task.State, task.Due)
		case r.State.Done() && !task.State.Done():
			t.Fatalf("seed %d: the run is %s and its task %s", seed, r.State, task.State)
		case r.State == Pending && task.Attempts > 0:
			t.Fatalf("seed %d: a pending run has made attempts", seed)
		}
	}
}

func recordJSON(t *testing.T, r *Run) string {
	t.Helper()
	if r == nil {
		return ""
	}
	text, err := json.Marshal(r.Record(nil))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
