package run

import (
	"cmp"
	"errors"
	"fmt"
	"time"
)

// Shard is the state of one journal: the result of [Shard.Apply] for all of its events.
type Shard struct {
	Runs        map[ID]*Run
	Definitions map[string]*Definition // by digest
	Watermarks  map[string]Position    // by source of triggers: the number decided last, and the latest time of all decided ones
	Keys        Keys                   // idempotency keys of accepted requests
	Schedules   map[ScheduleRef]*Schedule
	Backfills   []*Backfill          // those that go, and the last ones that have ended, as they began
	Successes   map[string]time.Time // by flow: the latest nominal time of a run that succeeded
	Pause       *Pause               // of the host; nil while attempts may start. What it points to does not change
}

// NewShard is the state before the first event.
func NewShard() *Shard {
	return &Shard{
		Runs:        map[ID]*Run{},
		Definitions: map[string]*Definition{},
		Watermarks:  map[string]Position{},
		Schedules:   map[ScheduleRef]*Schedule{},
		Successes:   map[string]time.Time{},
	}
}

// TransitionError reports that an event does not fit the state it was applied to:
// the journal is damaged, or its writer is wrong.
type TransitionError struct {
	Event  Event
	Reason string
}

func (e *TransitionError) Error() string {
	return fmt.Sprintf("run %s: event %s: %s", e.Event.Run, e.Event.Data.Kind(), e.Reason)
}

// Apply folds one event into the state. It returns the run that changed, nil
// for events that belong to no run, or a *TransitionError, and then nothing has
// changed. The state shares the event's slices and maps: an event must not be
// modified once it is applied.
func (s *Shard) Apply(e Event) (*Run, error) {
	if err := e.check(s); err != nil {
		return nil, &TransitionError{Event: e, Reason: err.Error()}
	}
	switch d := e.Data.(type) {
	case *Defined:
		s.Definitions[d.Definition.Digest()] = d.Definition
		return nil, nil
	case *Decided:
		s.decide(d.Position)
		return nil, nil
	case *HostPaused:
		s.Pause = &Pause{Reason: d.Reason, At: e.At}
		return nil, nil
	case *HostResumed:
		s.Pause = nil
		return nil, nil
	case *ScheduleSet, *ScheduleAdvanced, *SchedulePaused, *ScheduleResumed:
		s.applySchedule(e)
		return nil, nil
	case *BackfillStarted, *BackfillAdvanced, *BackfillEnded:
		s.applyBackfill(e)
		return nil, nil
	case *Submitted:
		r := &Run{
			ID: e.Run, Flow: d.Flow, Definition: d.Definition, Trigger: d.Trigger,
			Params: d.Params, Concurrency: d.Concurrency, RetryOf: d.RetryOf, Parent: d.Parent, Continuation: d.Continuation, Attempt: max(1, d.Attempt), Awaits: d.Awaits,
			Version: 1, State: Pending, CreatedAt: e.At,
		}
		s.Runs[e.Run] = r
		if d.Key != "" {
			s.Keys.Add(Key{Flow: d.Flow, Name: d.Key, At: e.At, Run: e.Run})
		}
		return r, nil
	}
	r := s.Runs[e.Run]
	r.Version++
	r.apply(e.At, e.Data)
	switch e.Data.(type) {
	case *Finished:
		s.runEnded(r)
	case *Started:
		r.PreviousSuccess = s.Successes[r.Flow]
	}
	return r, nil
}

// decide moves the watermark of a source. Its time never goes back: whatever clocks
// do, nothing that was decided comes after it.
func (s *Shard) decide(p Position) {
	if last := s.Watermarks[p.Source].At; p.At.Before(last) {
		p.At = last
	}
	s.Watermarks[p.Source] = p
}

// Forget drops a finished run from the state.
func (s *Shard) Forget(id ID) { delete(s.Runs, id) }

func (e Event) check(s *Shard) error {
	switch d := e.Data.(type) {
	case nil:
		return errors.New("unknown kind of event")
	case *Defined:
		if d.Definition == nil {
			return errors.New("the definition is missing")
		}
		return nil
	case *Decided:
		if last := s.Watermarks[d.Source]; !d.After(last) {
			return fmt.Errorf("source %q was decided up to %d, and again %d", d.Source, last.Seq, d.Seq)
		}
		return nil
	case *HostPaused:
		if s.Pause != nil {
			return errors.New("the host is paused already")
		}
		return nil
	case *HostResumed:
		if s.Pause == nil {
			return errors.New("the host is not paused")
		}
		return nil
	case *ScheduleSet, *ScheduleAdvanced, *SchedulePaused, *ScheduleResumed:
		return s.checkSchedule(d)
	case *BackfillStarted, *BackfillAdvanced, *BackfillEnded:
		return s.checkBackfill(d)
	case *Submitted:
		if s.Runs[e.Run] != nil {
			return errors.New("the run exists already")
		}
		if d.Awaits < 0 {
			return fmt.Errorf("it awaits %d task runs", d.Awaits)
		}
		return nil
	}
	r := s.Runs[e.Run]
	if r == nil {
		return errors.New("no such run")
	}
	return r.check(e.Data)
}

func (r *Run) check(data EventData) error {
	if r.State.Done() {
		return fmt.Errorf("the run is %s already", r.State)
	}
	switch d := data.(type) {
	case *Started:
		if r.Awaits > 0 {
			return fmt.Errorf("%d task runs are still to be taken over", r.Awaits)
		}
		return want(r.State, Pending)
	case *AttemptStarted:
		return r.checkStart(d.TaskRef, d.Attempt)
	case *ChildStarted:
		return r.checkStart(d.TaskRef, d.Attempt)
	case *TaskExpanded:
		return r.checkStart(d.TaskRef, 1)
	case *WaitStarted:
		return r.checkStart(d.TaskRef, 1)
	case *WaitEnded:
		if t := r.Task(d.TaskRef); t == nil || !t.Waits() || !d.State.Done() {
			return fmt.Errorf("%q does not wait, or cannot end as %s", d.Task, d.State)
		}
	case *AttemptFinished:
		t := r.Task(d.TaskRef)
		if t == nil || t.State != Running || t.Attempts != d.Attempt {
			return fmt.Errorf("attempt %d of task %q is not under way", d.Attempt, d.Task)
		}
	case *TaskReused:
		if r.Task(d.TaskRef) != nil {
			return fmt.Errorf("something has happened to task %q already", d.Task)
		}
		return r.checkItem(d.TaskRef)
	case *TaskCancelRequested:
		if t := r.Task(d.TaskRef); t != nil && (t.State.Done() || t.Cancel != nil) {
			return fmt.Errorf("task %q is %s or being canceled already", d.Task, t.State)
		}
	case *TaskEnded:
		if t := r.Task(d.TaskRef); t != nil && (t.State.Done() || t.State == Running && (t.Items == nil || t.open > 0)) {
			return fmt.Errorf("task %q is %s", d.Task, t.State)
		}
		if !d.State.Done() {
			return fmt.Errorf("task %q cannot end as %s", d.Task, d.State)
		}
	case *CancelRequested:
		if r.Cancel != nil {
			return errors.New("the run is being canceled already")
		}
	case *Finished:
		for _, t := range r.Tasks {
			if !t.State.Done() {
				return fmt.Errorf("task %q is still %s", t.Task, t.State)
			}
		}
		if !d.State.Done() || d.State == Skipped {
			return fmt.Errorf("a run cannot end as %s", d.State)
		}
	}
	return nil
}

func (r *Run) checkStart(ref TaskRef, attempt int) error {
	if err := want(r.State, Running); err != nil {
		return err
	}
	if err := r.checkItem(ref); err != nil {
		return err
	}
	return r.Task(ref).checkStart(attempt)
}

// checkItem checks that an item is one of a fan-out that continues.
func (r *Run) checkItem(ref TaskRef) error {
	if ref.Key == "" {
		return nil
	}
	whole := r.Task(TaskRef{Task: ref.Task})
	if whole == nil || whole.Items == nil || whole.State != Running {
		return fmt.Errorf("task %q is not fanned out", ref.Task)
	}
	return nil
}

func (t *TaskRun) checkStart(attempt int) error {
	made := 0
	if t != nil {
		if t.State != Ready || t.Cancel != nil {
			return fmt.Errorf("task %q is %s", t.Task, t.State)
		}
		made = t.Attempts
	}
	if attempt != made+1 {
		return fmt.Errorf("attempt %d follows %d attempts", attempt, made)
	}
	return nil
}

func want(have, expected State) error {
	if have != expected {
		return fmt.Errorf("the run is %s, not %s", have, expected)
	}
	return nil
}

// apply folds an event that check has passed.
func (r *Run) apply(at time.Time, data EventData) {
	switch d := data.(type) {
	case *Started:
		r.State, r.StartedAt = Running, at
	case *AttemptStarted:
		r.task(d.TaskRef).start(at, d)
	case *ChildStarted:
		t := r.task(d.TaskRef)
		t.start(at, &AttemptStarted{Attempt: d.Attempt, Input: d.Input})
		t.Child = d.Child
	case *TaskExpanded:
		t := r.task(d.TaskRef)
		t.State, t.StartedAt, t.Items = Running, at, d.Items
	case *WaitStarted:
		t := r.task(d.TaskRef)
		t.State, t.StartedAt, t.Due, t.Deadline = Running, at, d.Due, d.Deadline
		t.Subject, t.Approval = d.Subject, d.Approval
	case *WaitEnded:
		t := r.task(d.TaskRef)
		t.Output = d.Payload
		t.end(at, d.State, d.Failure)
	case *AttemptFinished:
		r.task(d.TaskRef).finish(at, d)
	case *TaskEnded:
		t := r.task(d.TaskRef)
		t.Reason = d.Reason
		t.end(at, d.State, d.Failure)
	case *TaskReused:
		r.task(d.TaskRef).takeOver(at, d)
		r.Awaits = max(0, r.Awaits-1)
	case *TaskCancelRequested:
		r.task(d.TaskRef).Cancel = d.Failure
	case *CancelRequested:
		r.Cancel = d.Failure
	case *Finished:
		r.State, r.Output, r.Failure, r.FinishedAt = d.State, d.Output, d.Failure, at
	}
}

func (r *Run) task(ref TaskRef) *TaskRun {
	t := r.Task(ref)
	if t == nil {
		t = &TaskRun{TaskRef: ref, State: Waiting}
		r.AddTask(t)
	}
	return t
}

func (t *TaskRun) start(at time.Time, d *AttemptStarted) {
	t.State, t.Attempts, t.Due = Running, d.Attempt, time.Time{}
	if d.Attempt > 1 {
		return
	}
	t.StartedAt, t.Module, t.Function, t.Input, t.Config = at, d.Module, d.Function, d.Input, d.Config
}

func (t *TaskRun) finish(at time.Time, d *AttemptFinished) {
	t.Outcome, t.Failure = d.Outcome, d.Failure
	t.Busy += d.Duration
	t.Queued += d.Queued
	if d.Outcome == OutcomeLost {
		t.Lost++
	}
	if !d.RetryAt.IsZero() {
		t.State, t.Due = Ready, d.RetryAt
		return
	}
	t.Output = d.Output
	t.done(at, d.Outcome.State())
}

// end is the end without an attempt, or that of a fan-out or a wait.
func (t *TaskRun) end(at time.Time, state State, failure *Failure) {
	t.Failure, t.Due = failure, time.Time{}
	if failure != nil {
		t.Outcome = failure.Outcome
	}
	t.done(at, state)
}

func (t *TaskRun) takeOver(at time.Time, d *TaskReused) {
	t.StartedAt, t.Reused, t.Output, t.Failure, t.Items = at, true, d.Output, d.Failure, d.Items
	switch {
	case d.State == Running:
		t.State = Running
		return
	case d.Failure != nil:
		t.Outcome = d.Failure.Outcome
	case d.State == "" || d.State == Succeeded:
		t.Outcome = OutcomeSucceeded
	}
	t.done(at, cmp.Or(d.State, Succeeded))
}

func (t *TaskRun) done(at time.Time, state State) {
	t.State, t.FinishedAt = state, at
	if t.whole != nil {
		t.whole.open--
	}
}
