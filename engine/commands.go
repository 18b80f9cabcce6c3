package engine

import (
	"context"

	"github.com/flowhost/flowhost/flows"
	"github.com/flowhost/flowhost/run"
)

// Deploy makes the flows of a set known by name and arms their schedules. A flow
// of the same name is replaced for new runs; runs in progress keep theirs.
func (e *Engine) Deploy(ctx context.Context, set *flows.Set) error {
	return e.command(ctx, func() {
		for _, f := range set.Flows {
			e.flows[f.Name] = f
			e.sets[f.DefinitionDigest] = set
			e.arm(f)
		}
	})
}

// Submit asks for a run and gives its receipt once the run is durable. A request
// that cannot make a run is answered with a *run.RequestError, one that comes
// too many with a *BusyError.
//
// A receipt decides the request's position: asked for again, it makes no second
// run. An error does not; whoever asked decides it with [Engine.Decide] once the
// message is kept elsewhere.
func (e *Engine) Submit(ctx context.Context, request run.Request) (run.Receipt, error) {
	type answer struct {
		receipt run.Receipt
		err     error
	}
	answers := make(chan answer, 1)
	err := e.command(ctx, func() {
		receipt, err := e.submit(request)
		e.afterCommit(func() { answers <- answer{receipt, err} })
	})
	if err != nil {
		return run.Receipt{}, err
	}
	a, err := await(ctx, e, answers)
	if err != nil {
		return run.Receipt{}, err
	}
	return a.receipt, a.err
}

// Decide moves the watermark of a source of triggers past a request that was
// refused. It returns once that is durable.
func (e *Engine) Decide(ctx context.Context, position run.Position) error {
	answers := make(chan struct{}, 1)
	err := e.command(ctx, func() {
		if position.Seq > e.shard.Watermarks[position.Source] {
			e.record(e.decided(position))
		}
		e.afterCommit(func() { answers <- struct{}{} })
	})
	if err != nil {
		return err
	}
	_, err = await(ctx, e, answers)
	return err
}

// Wait gives a run's record once it is finished and durable.
func (e *Engine) Wait(ctx context.Context, id run.ID) (*run.Record, error) {
	var end *ending
	err := e.command(ctx, func() {
		if o := e.open[id]; o != nil {
			end = o.end
			return
		}
		end = e.finished.get(id)
	})
	if err != nil {
		return nil, err
	}
	if end == nil {
		return nil, ErrUnknownRun
	}
	if _, err := await(ctx, e, end.durable); err != nil {
		return nil, err
	}
	return end.record, nil
}

// Get gives a run's present record.
func (e *Engine) Get(ctx context.Context, id run.ID) (*run.Record, error) {
	answers := make(chan *run.Record, 1)
	err := e.command(ctx, func() {
		var record *run.Record
		if o := e.open[id]; o != nil {
			record = o.run.Record(taskNames(o.flow))
		} else if end := e.finished.get(id); end != nil {
			record = end.record
		}
		e.afterCommit(func() { answers <- record })
	})
	if err != nil {
		return nil, err
	}
	record, err := await(ctx, e, answers)
	if err == nil && record == nil {
		err = ErrUnknownRun
	}
	return record, err
}

// Cancel stops a run: attempts under way are canceled, no other starts. It
// returns once that is durable; the run is finished soon after.
func (e *Engine) Cancel(ctx context.Context, id run.ID, reason string) error {
	answers := make(chan error, 1)
	err := e.command(ctx, func() {
		o := e.open[id]
		switch {
		case o == nil && e.finished.get(id) != nil:
			answers <- ErrFinished
			return
		case o == nil:
			answers <- ErrUnknownRun
			return
		}
		e.cancel(o, &run.Failure{Outcome: run.OutcomeCanceled, Code: run.CodeCanceled, Message: reason})
		e.afterCommit(func() { answers <- nil })
	})
	if err != nil {
		return err
	}
	answer, err := await(ctx, e, answers)
	if err != nil {
		return err
	}
	return answer
}

// Watermark is the last position of a source of triggers that has been decided,
// 0 before the first.
func (e *Engine) Watermark(ctx context.Context, source string) (uint64, error) {
	answers := make(chan uint64, 1)
	err := e.command(ctx, func() {
		seq := e.shard.Watermarks[source]
		e.afterCommit(func() { answers <- seq })
	})
	if err != nil {
		return 0, err
	}
	return await(ctx, e, answers)
}
