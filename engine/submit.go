package engine

import (
	"errors"

	"github.com/flowhost/flowhost/run"
)

// submit decides a request. Whatever it records is durable when the answer is
// given out.
func (e *Engine) submit(request run.Request) (run.Receipt, error) {
	position := request.Position
	if position.Source != "" && position.Seq <= e.shard.Watermarks[position.Source] {
		return run.Receipt{}, nil
	}
	if e.draining {
		return run.Receipt{}, ErrDraining
	}
	if len(e.open) >= e.config.OpenRuns {
		return run.Receipt{}, &BusyError{Limit: e.config.OpenRuns}
	}
	receipt, err := e.accept(request)
	if err == nil && !receipt.Accepted && position.Source != "" {
		e.record(e.decided(position))
	}
	return receipt, err
}

func (e *Engine) decided(position run.Position) run.Event {
	return run.Event{At: now(), Data: &run.Decided{Position: position}}
}

func (e *Engine) accept(request run.Request) (run.Receipt, error) {
	f := e.flows[request.Flow]
	if f == nil {
		return run.Receipt{}, run.Requestf(run.RequestUnknownFlow, "there is no flow %q here", request.Flow)
	}
	admission, err := f.Admit(request)
	if err != nil || !admission.Accepted {
		return run.Receipt{}, err
	}
	if err := e.define(f.DefinitionDigest, f.Definition); err != nil {
		return run.Receipt{}, err
	}
	at := now()
	id := run.NewID(at)
	events := []run.Event{{Run: id, At: at, Data: &run.Submitted{
		Flow: f.Name, Definition: f.DefinitionDigest, Trigger: admission.Trigger,
		Params: admission.Params, Concurrency: admission.Concurrency,
	}}}
	if request.Position.Source != "" {
		events = append(events, e.decided(request.Position))
	}
	if err := e.record(events...); err != nil {
		return run.Receipt{}, tooLarge("the request", err)
	}
	o := e.newOpenRun(e.shard.Runs[id], f)
	e.enter(o)
	return run.Receipt{Run: id, Accepted: true}, nil
}

// define records a definition before the first run that refers to it.
func (e *Engine) define(digest string, definition *run.Definition) error {
	if e.shard.Definitions[digest] != nil {
		return nil
	}
	err := e.record(run.Event{At: now(), Data: &run.Defined{Definition: definition}})
	return tooLarge("the folder of the flow's files", err)
}

func tooLarge(what string, err error) error {
	if size := (*SizeError)(nil); errors.As(err, &size) {
		return run.Requestf(run.RequestSize, "%s takes %d bytes and the journal's records hold at most %d", what, size.Size, size.Limit)
	}
	return err
}
