package run

import (
	"encoding/json"
	"fmt"
	"time"
)

// Numbers of the kinds of events in stored commits. They are never used again
// for something else.
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
		e.payload(d.Output)
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
	default:
		e.err = fmt.Errorf("%T is no event", d)
	}
}

func (e *encoder) head(kind byte, event Event) {
	e.out = append(e.out, kind)
	e.name(string(event.Run))
	e.time(event.At)
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
		event.Data = &TaskReused{TaskRef: d.ref(), Output: d.bytes()}
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
		event.Data = &Decided{Position{Source: d.name(), Seq: d.uint()}}
	default:
		d.fail(fmt.Errorf("unknown kind of event %d", kind))
	}
	return event
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
		Concurrency: d.text(), Key: d.text(), RetryOf: ID(d.text()),
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
