package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/flowhost/flowhost/flows"
	"github.com/flowhost/flowhost/run"
)

// Errors of Signal and Approve.
var (
	ErrUnknownWait = errors.New("the run's flow has no such wait")
	ErrNotWaiting  = errors.New("the wait has not started yet and stores nothing before: try again once it has started")
	ErrWaitEnded   = errors.New("the wait has ended already")
	ErrWaitKind    = errors.New("the wait ends in another way")
)

// Signal ends a wait for a signal or a message with a payload, which is JSON or nil
// for null. It returns once that is durable, and a *run.RequestError for an invalid
// payload.
func (e *Engine) Signal(ctx context.Context, id run.ID, wait string, payload json.RawMessage) error {
	payload, err := checkedPayload(payload)
	if err != nil {
		return err
	}
	return e.answerWait(ctx, id, wait, flows.WaitSignal, &run.WaitEnded{State: run.Succeeded, Payload: payload})
}

// Approve decides a wait for an approval; a refused one has failed. It returns once
// that is durable, and the errors of Signal.
func (e *Engine) Approve(ctx context.Context, id run.ID, wait string, a run.Approval) error {
	var err error
	if a.Payload, err = checkedPayload(a.Payload); err != nil {
		return err
	}
	payload, err := a.MarshalJSON()
	if err != nil {
		return err
	}
	end := &run.WaitEnded{State: run.Succeeded, Payload: payload}
	if !a.Approved {
		end.State, end.Failure = run.Failed, refusal(a)
	}
	return e.answerWait(ctx, id, wait, flows.WaitApproval, end)
}

// checkedPayload is a payload as it is recorded: nil for none.
func checkedPayload(payload json.RawMessage) (json.RawMessage, error) {
	if len(payload) == 0 {
		return nil, nil
	}
	err := run.CheckPayload(payload)
	switch {
	case errors.Is(err, run.ErrPayloadSyntax):
		return nil, run.Requestf(run.RequestPayload, "the payload is %s", err)
	case err != nil:
		return nil, run.Requestf(run.RequestPayload, "the payload is refused: %s", err)
	}
	return payload, nil
}

// refusal is the reason why the engine accepts no new run now, nil if it does.
func refusal(a run.Approval) *run.Failure {
	message := "the approval was refused"
	if a.By != "" {
		message += " by " + a.By
	}
	if a.Reason != "" {
		message += ": " + a.Reason
	}
	return &run.Failure{Outcome: run.OutcomeFailed, Code: run.CodeRefused, Message: message}
}

// answerWait ends a wait on request.
func (e *Engine) answerWait(ctx context.Context, id run.ID, wait string, as flows.WaitFor, end *run.WaitEnded) error {
	answers := make(chan error, 1)
	err := e.command(ctx, func() {
		o := e.exec.open[id]
		if o == nil {
			answers <- run.ErrUnknown
			return
		}
		o.whenIdle(func() {
			err := e.exec.endNamed(o, flows.WaitPrefix+wait, as, end)
			e.exec.commits.afterCommit(func() { answers <- err })
		})
	})
	return e.awaitCancel(ctx, id, answers, err)
}

func (e *executor) endNamed(o *openRun, name string, as flows.WaitFor, end *run.WaitEnded) error {
	spec := o.wait(name)
	if spec == nil {
		return ErrUnknownWait
	}
	if kind := spec.Wait.For; kind != as && !(kind == flows.WaitSubject && as == flows.WaitSignal) {
		return fmt.Errorf("%w: it waits for %s", ErrWaitKind, awaitedText[kind])
	}
	if err := fits(end.Payload); err != nil {
		return run.Requestf(run.RequestSize, "the payload: %s", err)
	}
	ref := run.TaskRef{Task: name}
	if state := o.run.Task(ref); state != nil && state.State.Done() {
		return fmt.Errorf("%w: its state is %s", ErrWaitEnded, state.State)
	}
	w := o.waits[ref]
	if w == nil {
		return ErrNotWaiting
	}
	return tooLarge("the payload", e.waitOver(w, end))
}

// awaitedText describes what ends a wait, and what the caller can do about it.
var awaitedText = map[flows.WaitFor]string{
	flows.WaitDuration: "time to pass", flows.WaitUntil: "a time", flows.WaitSubject: "a message or a signal: give it one",
	flows.WaitApproval: "an approval: approve or refuse it", flows.WaitSignal: "a signal: give it one",
}

// wait finds a wait by name, in whatever part of the flow.
func (o *openRun) wait(name string) *flows.Task {
	for _, s := range o.flow.Sections {
		for _, spec := range s.Tasks {
			if spec.Name == name && spec.Wait != nil {
				return spec
			}
		}
	}
	return nil
}
