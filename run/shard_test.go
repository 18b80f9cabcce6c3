package run

import (
	"encoding/json"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

var t0 = time.Date(2026, 3, 29, 1, 2, 3, 456789, time.UTC)

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
		"second pause of the host":        {[]EventData{&HostPaused{}}, &HostPaused{}},
		"resume of a host that goes":      {[]EventData{&HostPaused{}, &HostResumed{}}, &HostResumed{}},
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
