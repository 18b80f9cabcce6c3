package engine

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"maps"

	"github.com/flowhost/flowhost/engine/internal/rerun"
	"github.com/flowhost/flowhost/flows"
	"github.com/flowhost/flowhost/run"
)

// Retry makes a new run from an earlier one, with its trigger. The new run carries over
// the results that need not be computed again, see [run.RerunOptions]. Retry returns
// ErrUnfinished and ErrSucceeded for runs that cannot be continued, and otherwise the
// errors of Submit. If the request names a task, the earlier run may be in any state:
// tasks that have not ended are left out.
func (e *Engine) Retry(ctx context.Context, id run.ID, how run.RerunOptions) (run.Receipt, error) {
	if err := checkParams(how.Params); err != nil {
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
	return e.receive(ctx, e.exec.commits.afterCommit, func() ask {
		again := e.plan(f, before, how)
		return func(answer answerRequest) {
			e.exec.watchdog.Doing("making a run again", string(id))
			e.exec.retry(again, before.Run, answer)
		}
	})
}

// repetition is a run that is made again, as planned by whoever requests it.
type repetition struct {
	admission
	recorded     bool // the flow is that of the earlier run's definition
	reused       []run.EventData
	continuation json.RawMessage
}

// plan lets the recorded flow admit the run again, or the deployed one if that is nil, and
// finds what the run carries over.
func (e *Engine) plan(f *flows.Flow, before *rerun.Predecessor, how run.RerunOptions) *repetition {
	old := before.Run
	again := &repetition{recorded: f != nil, admission: admission{flow: cmp.Or(f, e.deployedFlow(old.Flow))}}
	switch {
	case old.Truncated && len(old.Tasks) == 0:
		again.err = run.Requestf(run.RequestSize, "the record of the run was larger than a message and has lost its payload and params: start a new run")
	case again.flow == nil:
		again.err = run.Requestf(run.RequestUnknownFlow, "flow %q of the run is no longer deployed", old.Flow)
	default:
		again.Admission, again.err = again.flow.Admit(run.Request{Flow: old.Flow, Trigger: old.Trigger, Params: paramsFor(old, how)})
	}
	if again.err == nil && !again.Accepted {
		again.err = run.Requestf(run.RequestExpression, "the filter of the run's trigger refuses it now")
	}
	if again.err == nil {
		again.err = rerun.CheckParams(again.flow, old, how, again.Params)
	}
	if again.err == nil && !how.Whole {
		again.reused, again.continuation, again.err = e.exec.carriedOver(again.flow, before, how)
	}
	return again
}

// flowOf is the recorded flow of a run if the request asks for it, and nil otherwise.
func (e *Engine) flowOf(ctx context.Context, old *run.Record, how run.RerunOptions) (*flows.Flow, error) {
	if !how.Recorded {
		return nil, nil
	}
	var set *flows.Set
	var definition *run.Definition
	err := e.command(ctx, func() { set, definition = e.exec.sets[old.Definition], e.exec.shard.Definitions[old.Definition] })
	switch {
	case err != nil:
		return nil, err
	case set == nil && definition == nil:
		return nil, run.Requestf(run.RequestUnknownFlow, "the recorded flow is no longer kept (definition %s): use the current one", old.Definition)
	case set == nil:
		if set, err = e.exec.config.Restore(ctx, definition); err != nil {
			return nil, run.Requestf(run.RequestUnknownFlow, "the recorded flow cannot be loaded: %s", err)
		}
	}
	if f := set.Flow(old.Flow); f != nil {
		return f, nil
	}
	return nil, run.Requestf(run.RequestUnknownFlow, "the recorded definition has no flow %q", old.Flow)
}

// retry makes a run again.
func (e *executor) retry(again *repetition, old *run.Record, answer answerRequest) {
	switch err := e.refusal(); {
	case err != nil:
		answer(run.Receipt{}, err)
		return
	case !again.recorded && again.flow != e.flows[old.Flow]:
		answer(run.Receipt{}, errRedeployed)
		return
	case again.err != nil:
		answer(run.Receipt{}, again.err)
		return
	}
	submitted := &run.Submitted{
		Flow: again.flow.Name, Definition: again.flow.DefinitionDigest, Trigger: again.Trigger,
		Params: again.Params, Concurrency: again.Concurrency, RetryOf: old.Run, Attempt: old.NextAttempt(), Continuation: again.continuation,
	}
	if len(again.reused) > maxTogether {
		e.openInPieces(again.flow, submitted, again.reused, answer)
		return
	}
	answer(e.openNew(again.flow, submitted, again.reused...))
}

// paramsFor are the params of the new run.
func paramsFor(old *run.Record, how run.RerunOptions) map[string]json.RawMessage {
	params := map[string]json.RawMessage{}
	if !how.FreshParams {
		maps.Copy(params, old.Params)
	}
	maps.Copy(params, how.Params)
	return params
}

// carriedOver gives what a run carries over from an earlier one: the events, and the
// continuation that is recorded with its acceptance.
func (e *executor) carriedOver(f *flows.Flow, before *rerun.Predecessor, how run.RerunOptions) ([]run.EventData, json.RawMessage, error) {
	took, err := before.Plan(f, how)
	if err != nil {
		return nil, nil, err
	}
	if err := rerun.CheckChildren(took.Within, e.config.Journal.Limit()/2); err != nil {
		return nil, nil, err
	}
	continuation, err := took.Encode()
	if err == nil {
		err = tooLarge("the part that the runs of its sub-flows carry over", fits(continuation))
	}
	return rerun.Events(took.Reused), continuation, err
}

// predecessor reads the runs of sub-flows that the new run continues: those on the way
// to the named task, or all that did not succeed. Of the latter, those that are no
// longer kept start from the beginning.
func (e *Engine) predecessor(ctx context.Context, record *run.Record, how run.RerunOptions) (*rerun.Predecessor, error) {
	before := &rerun.Predecessor{Run: record, Children: map[run.ID]*run.Record{}}
	if how.Whole {
		return before, nil
	}
	if err := whole(record); err != nil {
		return nil, err
	}
	if how.Task.Task == "" {
		return before, e.unsuccessful(ctx, record, before.Children)
	}
	for _, ref := range how.Within {
		t := recordOf(record, ref)
		if t != nil && t.Items != nil {
			return nil, run.Requestf(run.RequestUnknownTask, "task %s is fanned out: name the item, %s[KEY]/…", ref.Task, ref.Task)
		}
		if t == nil || t.Child == "" {
			return nil, run.Requestf(run.RequestUnknownTask, "task %s of run %s did not run a flow", ref.Label(), record.Run)
		}
		child, err := e.Get(ctx, t.Child)
		if errors.Is(err, run.ErrUnknown) {
			return nil, run.Requestf(run.RequestUnknownTask, "run %s of task %s is no longer kept: run the whole task again", t.Child, ref.Label())
		}
		if err == nil {
			err = whole(child)
		}
		if err != nil {
			return nil, err
		}
		before.Children[child.Run] = child
		record = child
	}
	return before, nil
}

// unsuccessful reads those runs of a run's sub-flows that did not succeed.
func (e *Engine) unsuccessful(ctx context.Context, record *run.Record, children map[run.ID]*run.Record) error {
	for i := range record.Tasks {
		t := &record.Tasks[i]
		if t.Child == "" || t.State == run.Succeeded {
			continue
		}
		child, err := e.Get(ctx, t.Child)
		if errors.Is(err, run.ErrUnknown) {
			continue
		}
		if err == nil && !child.Truncated {
			children[child.Run] = child
			err = e.unsuccessful(ctx, child, children)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// whole refuses a record that was truncated.
func whole(record *run.Record) error {
	if !record.Truncated {
		return nil
	}
	return run.Requestf(run.RequestSize, "the record of run %s was larger than a message and is truncated: rerun it as a whole", record.Run)
}

// recordOf is the record of a task or an item, nil for none.
func recordOf(record *run.Record, ref run.TaskRef) *run.TaskRecord {
	for i := range record.Tasks {
		if t := &record.Tasks[i]; t.Ref() == ref {
			return t
		}
	}
	return nil
}
