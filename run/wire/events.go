package wire

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/flowhost/flowhost/run"
)

// Numbers of the kinds of events in stored commits. A number is never reused for
// another kind.
const (
	kindSubmitted = iota + 1
	kindStarted
	kindAttemptStarted
	kindAttemptFinished
	kindTaskEnded
	kindCancelRequested
	kindFinished
	kindDefined
	kindDecided
	kindTaskReused
	kindTaskCancelRequested
	kindScheduleSet
	kindScheduleAdvanced
	kindSchedulePaused
	kindScheduleResumed
	kindBackfillStarted
	kindBackfillAdvanced
	kindBackfillEnded
	kindTaskExpanded
	kindWaitStarted
	kindWaitEnded
	kindChildStarted
	kindHostPaused
	kindHostResumed
)

func (e *encoder) event(event run.Event) {
	switch d := event.Data.(type) {
	case *run.Submitted:
		e.head(kindSubmitted, event)
		e.submitted(d)
	case *run.Started:
		e.head(kindStarted, event)
	case *run.AttemptStarted:
		e.head(kindAttemptStarted, event)
		e.ref(d.TaskRef)
		e.int(int64(d.Attempt))
		e.name(d.Module)
		e.name(d.Function)
		e.payload(d.Input)
		e.payload(d.Config)
	case *run.AttemptFinished:
		e.head(kindAttemptFinished, event)
		e.ref(d.TaskRef)
		e.int(int64(d.Attempt))
		e.name(string(d.Outcome))
		e.payload(d.Output)
		e.failure(d.Failure)
		e.time(d.RetryAt)
		e.int(int64(d.Duration))
		e.int(int64(d.Queued))
	case *run.TaskEnded:
		e.head(kindTaskEnded, event)
		e.ref(d.TaskRef)
		e.name(string(d.State))
		e.failure(d.Failure)
		e.name(d.Reason)
	case *run.TaskReused:
		e.head(kindTaskReused, event)
		e.ref(d.TaskRef)
		e.name(string(d.State))
		e.payload(d.Output)
		e.failure(d.Failure)
		e.payload(d.Items)
	case *run.TaskCancelRequested:
		e.head(kindTaskCancelRequested, event)
		e.ref(d.TaskRef)
		e.failure(d.Failure)
	case *run.CancelRequested:
		e.head(kindCancelRequested, event)
		e.failure(d.Failure)
	case *run.Finished:
		e.head(kindFinished, event)
		e.name(string(d.State))
		e.payload(d.Output)
		e.failure(d.Failure)
	case *run.Defined:
		e.head(kindDefined, event)
		e.json(d.Definition)
	case *run.Decided:
		e.head(kindDecided, event)
		e.name(d.Source)
		e.uint(d.Seq)
		e.time(d.At)
	case *run.HostPaused:
		e.head(kindHostPaused, event)
		e.text(d.Reason)
	case *run.HostResumed:
		e.head(kindHostResumed, event)
	default:
		e.branchEvent(event)
	}
}

// branchEvent writes the events of fan-outs, waits and sub-flows.
func (e *encoder) branchEvent(event run.Event) {
	switch d := event.Data.(type) {
	case *run.TaskExpanded:
		e.head(kindTaskExpanded, event)
		e.ref(d.TaskRef)
		e.payload(d.Items)
	case *run.WaitStarted:
		e.head(kindWaitStarted, event)
		e.ref(d.TaskRef)
		e.text(d.Subject)
		e.text(d.Approval)
		e.time(d.Due)
		e.time(d.Deadline)
	case *run.WaitEnded:
		e.head(kindWaitEnded, event)
		e.ref(d.TaskRef)
		e.name(string(d.State))
		e.payload(d.Payload)
		e.failure(d.Failure)
	case *run.ChildStarted:
		e.head(kindChildStarted, event)
		e.ref(d.TaskRef)
		e.int(int64(d.Attempt))
		e.name(string(d.Child))
		e.payload(d.Input)
	default:
		e.scheduleEvent(event)
	}
}

func (e *encoder) parent(p *run.Parent) {
	e.bool(p != nil)
	if p == nil {
		return
	}
	e.name(string(p.Run))
	e.ref(p.TaskRef)
	e.int(int64(p.Depth))
}

// scheduleEvent writes the events of schedules and backfills.
func (e *encoder) scheduleEvent(event run.Event) {
	switch d := event.Data.(type) {
	case *run.ScheduleSet:
		e.head(kindScheduleSet, event)
		e.schedule(d.ScheduleRef)
		e.text(d.Spec)
		e.time(d.From)
	case *run.ScheduleAdvanced:
		e.head(kindScheduleAdvanced, event)
		e.schedule(d.ScheduleRef)
		e.time(d.Nominal)
		e.int(int64(d.Dropped))
		e.name(d.Reason)
	case *run.SchedulePaused:
		e.head(kindSchedulePaused, event)
		e.schedule(d.ScheduleRef)
		e.text(d.Reason)
	case *run.ScheduleResumed:
		e.head(kindScheduleResumed, event)
		e.schedule(d.ScheduleRef)
	case *run.BackfillStarted:
		e.head(kindBackfillStarted, event)
		e.text(string(d.ID))
		e.schedule(d.Schedule)
		e.times(d.Times)
		e.int(int64(d.MaxActive))
	case *run.BackfillAdvanced:
		e.head(kindBackfillAdvanced, event)
		e.text(string(d.ID))
	case *run.BackfillEnded:
		e.head(kindBackfillEnded, event)
		e.text(string(d.ID))
		e.text(d.Reason)
	default:
		e.err = fmt.Errorf("%T is not an event", d)
	}
}

func (e *encoder) head(kind byte, event run.Event) {
	e.out = append(e.out, kind)
	e.name(string(event.Run))
	e.time(event.At)
}

func (e *encoder) schedule(r run.ScheduleRef) {
	e.name(r.Flow)
	e.name(r.Trigger)
}

func (e *encoder) times(times []time.Time) {
	e.count(len(times))
	for _, t := range times {
		e.time(t)
	}
}

func (e *encoder) ref(r run.TaskRef) {
	e.name(r.Task)
	e.text(r.Key)
}

func (e *encoder) failure(f *run.Failure) {
	if f == nil {
		e.bytes(nil)
		return
	}
	e.json(f)
}

func (e *encoder) submitted(d *run.Submitted) {
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

func (e *encoder) trigger(t *run.Trigger) {
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

func (d *decoder) event() run.Event {
	var kind byte
	if b := d.take(1); len(b) == 1 {
		kind = b[0]
	}
	event := run.Event{Run: run.ID(d.name()), At: d.time()}
	switch kind {
	case kindSubmitted:
		event.Data = d.submitted()
	case kindStarted:
		event.Data = &run.Started{}
	case kindAttemptStarted:
		event.Data = &run.AttemptStarted{
			TaskRef: d.ref(), Attempt: d.small(), Module: d.name(), Function: d.name(), Input: d.bytes(), Config: d.bytes(),
		}
	case kindAttemptFinished:
		event.Data = &run.AttemptFinished{
			TaskRef: d.ref(), Attempt: d.small(), Outcome: run.Outcome(d.name()), Output: d.bytes(),
			Failure: d.failure(), RetryAt: d.time(), Duration: time.Duration(d.int()), Queued: time.Duration(d.int()),
		}
	case kindTaskEnded:
		event.Data = &run.TaskEnded{TaskRef: d.ref(), State: run.State(d.name()), Failure: d.failure(), Reason: d.name()}
	case kindTaskReused:
		event.Data = &run.TaskReused{TaskRef: d.ref(), State: run.State(d.name()), Output: d.bytes(), Failure: d.failure(), Items: d.bytes()}
	case kindTaskCancelRequested:
		event.Data = &run.TaskCancelRequested{TaskRef: d.ref(), Failure: d.failure()}
	case kindCancelRequested:
		event.Data = &run.CancelRequested{Failure: d.failure()}
	case kindFinished:
		event.Data = &run.Finished{State: run.State(d.name()), Output: d.bytes(), Failure: d.failure()}
	case kindDefined:
		defined := &run.Defined{}
		d.json(&defined.Definition)
		event.Data = defined
	case kindDecided:
		event.Data = &run.Decided{Position: run.Position{Source: d.name(), Seq: d.uint(), At: d.time()}}
	case kindHostPaused:
		event.Data = &run.HostPaused{Reason: d.text()}
	case kindHostResumed:
		event.Data = &run.HostResumed{}
	default:
		event.Data = d.branchEvent(kind)
	}
	return event
}

// branchEvent reads the events of fan-outs, waits and sub-flows.
func (d *decoder) branchEvent(kind byte) run.EventData {
	switch kind {
	case kindTaskExpanded:
		return &run.TaskExpanded{TaskRef: d.ref(), Items: d.bytes()}
	case kindWaitStarted:
		return &run.WaitStarted{TaskRef: d.ref(), Subject: d.text(), Approval: d.text(), Due: d.time(), Deadline: d.time()}
	case kindWaitEnded:
		return &run.WaitEnded{TaskRef: d.ref(), State: run.State(d.name()), Payload: d.bytes(), Failure: d.failure()}
	case kindChildStarted:
		return &run.ChildStarted{TaskRef: d.ref(), Attempt: d.small(), Child: run.ID(d.name()), Input: d.bytes()}
	}
	return d.scheduleEvent(kind)
}

func (d *decoder) parent() *run.Parent {
	if !d.bool() {
		return nil
	}
	return &run.Parent{Run: run.ID(d.name()), TaskRef: d.ref(), Depth: d.small()}
}

// scheduleEvent reads the events of schedules and backfills.
func (d *decoder) scheduleEvent(kind byte) run.EventData {
	switch kind {
	case kindScheduleSet:
		return &run.ScheduleSet{ScheduleRef: d.schedule(), Spec: d.text(), From: d.time()}
	case kindScheduleAdvanced:
		return &run.ScheduleAdvanced{ScheduleRef: d.schedule(), Nominal: d.time(), Dropped: d.small(), Reason: d.name()}
	case kindSchedulePaused:
		return &run.SchedulePaused{ScheduleRef: d.schedule(), Reason: d.text()}
	case kindScheduleResumed:
		return &run.ScheduleResumed{ScheduleRef: d.schedule()}
	case kindBackfillStarted:
		return &run.BackfillStarted{ID: run.ID(d.text()), Schedule: d.schedule(), Times: d.times(), MaxActive: d.small()}
	case kindBackfillAdvanced:
		return &run.BackfillAdvanced{ID: run.ID(d.text())}
	case kindBackfillEnded:
		return &run.BackfillEnded{ID: run.ID(d.text()), Reason: d.text()}
	}
	d.fail(fmt.Errorf("unknown kind of event %d", kind))
	return nil
}

func (d *decoder) schedule() run.ScheduleRef {
	return run.ScheduleRef{Flow: d.name(), Trigger: d.name()}
}

func (d *decoder) times() []time.Time {
	var times []time.Time
	for range d.count() {
		times = append(times, d.time())
	}
	return times
}

func (d *decoder) ref() run.TaskRef { return run.TaskRef{Task: d.name(), Key: d.text()} }

func (d *decoder) failure() *run.Failure {
	b := d.bytes()
	if b == nil || d.err != nil {
		return nil
	}
	f := new(run.Failure)
	if err := json.Unmarshal(b, f); err != nil {
		d.fail(err)
	}
	return f
}

func (d *decoder) submitted() *run.Submitted {
	return &run.Submitted{
		Flow: d.name(), Definition: d.name(), Trigger: d.trigger(), Params: d.params(),
		Concurrency: d.text(), Key: d.text(), RetryOf: run.ID(d.text()), Parent: d.parent(),
		Continuation: d.bytes(), Attempt: d.small(), Awaits: d.small(),
	}
}

func (d *decoder) trigger() run.Trigger {
	return run.Trigger{
		Kind: run.TriggerKind(d.name()), Name: d.name(), Time: d.time(), Subject: d.name(),
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
