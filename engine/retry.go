package engine

import (
	"context"
	"encoding/json"
	"maps"

	"github.com/flowhost/flowhost/flows"
	"github.com/flowhost/flowhost/run"
)

// Retry makes a new run of one that was there before, with its trigger. The
// outputs of what need not run again are taken over, see [run.RerunOptions]. It answers
// ErrUnfinished and ErrSucceeded for runs that cannot be continued, and otherwise
// as Submit does. With a task, the run may be in any state: what has not ended of
// it is left out.
func (e *Engine) Retry(ctx context.Context, id run.ID, how run.RerunOptions) (run.Receipt, error) {
	if err := boundedParams(how.Params); err != nil {
		return run.Receipt{}, err
	}
	record, err := e.Get(ctx, id)
	switch one := how.Task.Task != ""; {
	case err != nil:
		return run.Receipt{}, err
	case !record.State.Done() && !one:
		return run.Receipt{}, ErrUnfinished
	case record.State == run.Succeeded && !how.Whole && !one:
		return run.Receipt{}, ErrSucceeded
	}
	f, err := e.flowOf(ctx, record, how)
	if err != nil {
		return run.Receipt{}, err
	}
	before, err := e.predecessor(ctx, record, how)
	if err != nil {
		return run.Receipt{}, err
	}
	return e.receive(ctx, func() (run.Receipt, error) { return e.retry(f, before, how) })
}

// flowOf is the recorded flow of a run, if that is asked for, and nil otherwise.
func (e *Engine) flowOf(ctx context.Context, old *run.Record, how run.RerunOptions) (*flows.Flow, error) {
	if !how.Recorded {
		return nil, nil
	}
	var set *flows.Set
	var definition *run.Definition
	err := e.command(ctx, func() { set, definition = e.sets[old.Definition], e.shard.Definitions[old.Definition] })
	switch {
	case err != nil:
		return nil, err
	case set == nil && definition == nil:
		return nil, run.Requestf(run.RequestUnknownFlow, "the flow as it was is not kept any more (definition %s): use the current one", old.Definition)
	case set == nil:
		if set, err = e.config.Restore(ctx, definition); err != nil {
			return nil, run.Requestf(run.RequestUnknownFlow, "the flow as it was cannot be loaded: %s", err)
		}
	}
	if f := set.Flow(old.Flow); f != nil {
		return f, nil
	}
	return nil, run.Requestf(run.RequestUnknownFlow, "the recorded definition has no flow %q", old.Flow)
}

// retry makes the run with the given flow, or with the one that is deployed.
func (e *Engine) retry(f *flows.Flow, before *predecessor, how run.RerunOptions) (run.Receipt, error) {
	if err := e.taking(); err != nil {
		return run.Receipt{}, err
	}
	old := before.run
	if old.Truncated && len(old.Tasks) == 0 {
		return run.Receipt{}, run.Requestf(run.RequestSize, "the record of the run was larger than a message, and the rest of it is gone, payload and params too: start a new one")
	}
	if f == nil {
		f = e.flows[old.Flow]
	}
	if f == nil {
		return run.Receipt{}, run.Requestf(run.RequestUnknownFlow, "flow %q of the run is not deployed any more", old.Flow)
	}
	admission, err := f.Admit(run.Request{Flow: old.Flow, Trigger: old.Trigger, Params: paramsFor(old, how)})
	if err != nil {
		return run.Receipt{}, err
	}
	if !admission.Accepted {
		return run.Receipt{}, run.Requestf(run.RequestExpression, "the filter of the run's trigger turns it away now")
	}
	reused, continuation := []run.EventData(nil), json.RawMessage(nil)
	if !how.Whole {
		if reused, continuation, err = e.takenOver(f, before, how); err != nil {
			return run.Receipt{}, err
		}
	}
	return e.admit(f, &run.Submitted{
		Flow: f.Name, Definition: f.DefinitionDigest, Trigger: admission.Trigger,
		Params: admission.Params, Concurrency: admission.Concurrency, RetryOf: old.Run, Attempt: old.NextAttempt(), Continuation: continuation,
	}, reused...)
}

// paramsFor are the params that are given to a run made again.
func paramsFor(old *run.Record, how run.RerunOptions) map[string]json.RawMessage {
	params := map[string]json.RawMessage{}
	if !how.FreshParams {
		maps.Copy(params, old.Params)
	}
	maps.Copy(params, how.Params)
	return params
}

// takenOver is what a run takes over from an earlier one, as events and as what is
// recorded with its acceptance.
func (e *Engine) takenOver(f *flows.Flow, before *predecessor, how run.RerunOptions) ([]run.EventData, json.RawMessage, error) {
	took, err := before.reusable(f, how)
	if err != nil {
		return nil, nil, err
	}
	if err := checkChildren(took.Within, e.config.Journal.Limit()/2); err != nil {
		return nil, nil, err
	}
	continuation, err := took.Encode()
	if err == nil {
		err = tooLarge("what the runs of its sub-flows take over", fits(continuation))
	}
	return asData(took.reused), continuation, err
}
