package run

import (
	"encoding/json"
	"fmt"
	"time"
)

// Numbers of the kinds of events in stored commits. A number is never reused for
// another kind.
const (
	wireSubmitted = iota + 1
	wireStarted
	wireAttemptStarted
	wireAttemptFinished
	wireTaskEnded
	wireCancelRequested
	wireFinished
	wireDefined
	wireDecided
	wireTaskReused
	wireTaskCancelRequested
	wireScheduleSet
	wireScheduleAdvanced
	wireSchedulePaused
	wireScheduleResumed
	wireBackfillStarted
	wireBackfillAdvanced
	wireBackfillEnded
	wireTaskExpanded
	wireWaitStarted
	wireWaitEnded
	wireChildStarted
)

func (e *encoder) event(event Event) {
	switch d := event.Data.(type) {
	case *Submitted:
		e.head(wireSubmitted, event)
		e.submitted(d)
	case *Started:
		e.head(wireStarted, event)
	case *AttemptStarted:
		e.head(wireAttemptStarted, event)
		e.ref(d.TaskRef)
		e.int(int64(d.Attempt))
		e.name(d.Module)
		e.name(d.Function)
		e.payload(d.Input)
		e.payload(d.Config)
	case *AttemptFinished:
		e.head(wireAttemptFinished, event)
		e.ref(d.TaskRef)
		e.int(int64(d.Attempt))
		e.name(string(d.Outcome))
		e.payload(d.Output)
		e.failure(d.Failure)
		e.time(d.RetryAt)
		e.int(int64(d.Duration))
	case *TaskEnded:
		e.head(wireTaskEnded, event)
		e.ref(d.TaskRef)
		e.name(string(d.State))
		e.failure(d.Failure)
	case *TaskReused:
		e.head(wireTaskReused, event)
		e.ref(d.TaskRef)
		e.name(string(d.State))
		e.payload(d.Output)
		e.failure(d.Failure)
		e.payload(d.Items)
	case *TaskCancelRequested:
		e.head(wireTaskCancelRequested, event)
		e.ref(d.TaskRef)
		e.failure(d.Failure)
	case *CancelRequested:
		e.head(wireCancelRequested, event)
		e.failure(d.Failure)
	case *Finished:
		e.head(wireFinished, event)
		e.name(string(d.State))
		e.payload(d.Output)
		e.failure(d.Failure)
	case *Defined:
		e.head(wireDefined, event)
		e.json(d.Definition)
	case *Decided:
		e.head(wireDecided, event)
		e.name(d.Source)
		e.uint(d.Seq)
		e.time(d.At)
	default:
		e.branchEvent(event)
	}
}

// branchEvent writes the events of fan-outs, waits and sub-flows.
func (e *encoder) branchEvent(event Event) {
	switch d := event.Data.(type) {
	case *TaskExpanded:
		e.head(wireTaskExpanded, event)
		e.ref(d.TaskRef)
		e.payload(d.Items)
	case *WaitStarted:
		e.head(wireWaitStarted, event)
		e.ref(d.TaskRef)
		e.text(d.Subject)
		e.text(d.Approval)
		e.time(d.Due)
		e.time(d.Deadline)
	case *WaitEnded:
		e.head(wireWaitEnded, event)
		e.ref(d.TaskRef)
		e.name(string(d.State))
		e.payload(d.Payload)
		e.failure(d.Failure)
	case *ChildStarted:
		e.head(wireChildStarted, event)
		e.ref(d.TaskRef)
		e.int(int64(d.Attempt))
		e.name(string(d.Child))
		e.payload(d.Input)
	default:
		e.scheduleEvent(event)
	}
}

func (e *encoder) parent(p *Parent) {
	e.bool(p != nil)
	if p == nil {
		return
	}
	e.name(string(p.Run))
	e.ref(p.TaskRef)
	e.int(int64(p.Depth))
}

// scheduleEvent writes the events of schedules and backfills.
func (e *encoder) scheduleEvent(event Event) {
	switch d := event.Data.(type) {
	case *ScheduleSet:
		e.head(wireScheduleSet, event)
		e.schedule(d.ScheduleRef)
		e.text(d.Spec)
		e.time(d.From)
	case *ScheduleAdvanced:
		e.head(wireScheduleAdvanced, event)
		e.schedule(d.ScheduleRef)
		e.time(d.Nominal)
		e.int(int64(d.Dropped))
		e.name(d.Reason)
	case *SchedulePaused:
		e.head(wireSchedulePaused, event)
		e.schedule(d.ScheduleRef)
		e.text(d.Reason)
	case *ScheduleResumed:
		e.head(wireScheduleResumed, event)
		e.schedule(d.ScheduleRef)
	case *BackfillStarted:
		e.head(wireBackfillStarted, event)
		e.text(string(d.ID))
		e.schedule(d.Schedule)
		e.times(d.Times)
		e.int(int64(d.MaxActive))
	case *BackfillAdvanced:
		e.head(wireBackfillAdvanced, event)
		e.text(string(d.ID))
	case *BackfillEnded:
		e.head(wireBackfillEnded, event)
		e.text(string(d.ID))
		e.text(d.Reason)
	default:
		e.err = fmt.Errorf("%T is not an event", d)
	}
}

func (e *encoder) head(kind byte, event Event) {
	e.out = append(e.out, kind)
	e.name(string(event.Run))
	e.time(event.At)
}

func (e *encoder) schedule(r ScheduleRef) {
	e.name(r.Flow)
	e.name(r.Trigger)
}

func (e *encoder) times(times []time.Time) {
	e.count(len(times))
	for _, t := range times {
		e.time(t)
	}
}

func (e *encoder) ref(r TaskRef) {
	e.name(r.Task)
	e.text(r.Key)
}

func (e *encoder) failure(f *Failure) {
	if f == nil {
		e.bytes(nil)
		return
	}
	e.json(f)
}

func (e *encoder) submitted(d *Submitted) {
	e.name(d.Flow)
	e.name(d.Definition)
	e.trigger(&d.Trigger)
	e.params(d.Params)
	e.text(d.Concurrency)
	e.text(d.Key)
	e.text(string(d.RetryOf))
	e.parent(d.Parent)
	e.payload(d.Continuation)
	e.int(int64(d.Attempt))
	e.int(int64(d.Awaits))
}

func (e *encoder) trigger(t *Trigger) {
	e.name(string(t.Kind))
	e.name(t.Name)
	e.time(t.Time)
	e.name(t.Subject)
	encodeMap(e, t.Headers, func(values []string) {
		e.count(len(values))
		for _, v := range values {
			e.text(v)
		}
	})
	e.payload(t.Payload)
}

func (e *encoder) params(params map[string]json.RawMessage) {
	encodeMap(e, params, func(v json.RawMessage) { e.payload(v) })
}

func (d *decoder) event() Event {
	var kind byte
	if b := d.take(1); len(b) == 1 {
		kind = b[0]
	}
	event := Event{Run: ID(d.name()), At: d.time()}
	switch kind {
	case wireSubmitted:
		event.Data = d.submitted()
	case wireStarted:
		event.Data = &Started{}
	case wireAttemptStarted:
		event.Data = &AttemptStarted{
			TaskRef: d.ref(), Attempt: d.small(), Module: d.name(), Function: d.name(), Input: d.bytes(), Config: d.bytes(),
		}
	case wireAttemptFinished:
		event.Data = &AttemptFinished{
			TaskRef: d.ref(), Attempt: d.small(), Outcome: Outcome(d.name()), Output: d.bytes(),
			Failure: d.failure(), RetryAt: d.time(), Duration: time.Duration(d.int()),
		}
	case wireTaskEnded:
		event.Data = &TaskEnded{TaskRef: d.ref(), State: State(d.name()), Failure: d.failure()}
	case wireTaskReused:
		event.Data = &TaskReused{TaskRef: d.ref(), State: State(d.name()), Output: d.bytes(), Failure: d.failure(), Items: d.bytes()}
	case wireTaskCancelRequested:
		event.Data = &TaskCancelRequested{TaskRef: d.ref(), Failure: d.failure()}
	case wireCancelRequested:
		event.Data = &CancelRequested{Failure: d.failure()}
	case wireFinished:
		event.Data = &Finished{State: State(d.name()), Output: d.bytes(), Failure: d.failure()}
	case wireDefined:
		defined := &Defined{}
		d.json(&defined.Definition)
		event.Data = defined
	case wireDecided:
		event.Data = &Decided{Position{Source: d.name(), Seq: d.uint(), At: d.time()}}
	default:
		event.Data = d.branchEvent(kind)
	}
	return event
}

// branchEvent reads the events of fan-outs, waits and sub-flows.
func (d *decoder) branchEvent(kind byte) EventData {
	switch kind {
	case wireTaskExpanded:
		return &TaskExpanded{TaskRef: d.ref(), Items: d.bytes()}
	case wireWaitStarted:
		return &WaitStarted{TaskRef: d.ref(), Subject: d.text(), Approval: d.text(), Due: d.time(), Deadline: d.time()}
	case wireWaitEnded:
		return &WaitEnded{TaskRef: d.ref(), State: State(d.name()), Payload: d.bytes(), Failure: d.failure()}
	case wireChildStarted:
		return &ChildStarted{TaskRef: d.ref(), Attempt: d.small(), Child: ID(d.name()), Input: d.bytes()}
	}
	return d.scheduleEvent(kind)
}

func (d *decoder) parent() *Parent {
	if !d.bool() {
		return nil
	}
	return &Parent{Run: ID(d.name()), TaskRef: d.ref(), Depth: d.small()}
}

// scheduleEvent reads the events of schedules and backfills.
func (d *decoder) scheduleEvent(kind byte) EventData {
	switch kind {
	case wireScheduleSet:
		return &ScheduleSet{ScheduleRef: d.schedule(), Spec: d.text(), From: d.time()}
	case wireScheduleAdvanced:
		return &ScheduleAdvanced{ScheduleRef: d.schedule(), Nominal: d.time(), Dropped: d.small(), Reason: d.name()}
	case wireSchedulePaused:
		return &SchedulePaused{ScheduleRef: d.schedule(), Reason: d.text()}
	case wireScheduleResumed:
		return &ScheduleResumed{ScheduleRef: d.schedule()}
	case wireBackfillStarted:
		return &BackfillStarted{ID: ID(d.text()), Schedule: d.schedule(), Times: d.times(), MaxActive: d.small()}
	case wireBackfillAdvanced:
		return &BackfillAdvanced{ID: ID(d.text())}
	case wireBackfillEnded:
		return &BackfillEnded{ID: ID(d.text()), Reason: d.text()}
	}
	d.fail(fmt.Errorf("unknown kind of event %d", kind))
	return nil
}

func (d *decoder) schedule() ScheduleRef { return ScheduleRef{Flow: d.name(), Trigger: d.name()} }

func (d *decoder) times() []time.Time {
	var times []time.Time
	for range d.count() {
		times = append(times, d.time())
	}
	return times
}

func (d *decoder) ref() TaskRef { return TaskRef{Task: d.name(), Key: d.text()} }

func (d *decoder) failure() *Failure {
	b := d.bytes()
	if b == nil || d.err != nil {
		return nil
	}
	f := new(Failure)
	if err := json.Unmarshal(b, f); err != nil {
		d.fail(err)
	}
	return f
}

func (d *decoder) submitted() *Submitted {
	return &Submitted{
		Flow: d.name(), Definition: d.name(), Trigger: d.trigger(), Params: d.params(),
		Concurrency: d.text(), Key: d.text(), RetryOf: ID(d.text()), Parent: d.parent(),
		Continuation: d.bytes(), Attempt: d.small(), Awaits: d.small(),
	}
}

func (d *decoder) trigger() Trigger {
	return Trigger{
		Kind: TriggerKind(d.name()), Name: d.name(), Time: d.time(), Subject: d.name(),
		Headers: decodeMap(d, func() []string {
			values := make([]string, d.count())
			for i := range values {
				values[i] = d.text()
			}
			return values
		}),
		Payload: d.bytes(),
	}
}

func (d *decoder) params() map[string]json.RawMessage {
	return decodeMap(d, func() json.RawMessage { return d.bytes() })
}
