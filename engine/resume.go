package engine

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/flowhost/flowhost/flows"
	"github.com/flowhost/flowhost/run"
	"github.com/flowhost/flowhost/run/wire"
)

// reopenAll opens every unfinished run in the order of acceptance: first the runs that
// have started, whose slots the others must not take.
func (e *executor) reopenAll(ctx context.Context) error {
	unfinished := make([]*run.Run, 0, len(e.shard.Runs))
	for _, r := range e.shard.Runs {
		unfinished = append(unfinished, r)
	}
	slices.SortFunc(unfinished, func(a, b *run.Run) int {
		if a, b := a.State == run.Pending, b.State == run.Pending; a != b {
			if b {
				return -1
			}
			return 1
		}
		if a.State != run.Pending { // a run comes before those of its sub-flows, and has always started
			if order := cmp.Compare(depth(a), depth(b)); order != 0 {
				return order
			}
		}
		return cmp.Or(a.CreatedAt.Compare(b.CreatedAt), cmp.Compare(a.ID, b.ID))
	})
	for _, r := range unfinished {
		if err := e.reopen(ctx, r); err != nil {
			return err
		}
	}
	e.limits.recall(e.open)
	e.children.reattach()
	return nil
}

// resumeTask continues a task or an item that began before a restart.
func (e *executor) resumeTask(t task) {
	t.holdSlots()
	switch state := t.state(); {
	case state.State == run.Running:
		e.resumeRunning(t)
	case t.stopped() != nil:
		e.end(t, run.Canceled, t.stopped())
	case state.State == run.Ready:
		e.retryAt(t, state.Due)
	}
}

// reopen opens an unfinished run with the definition with which it was accepted.
func (e *executor) reopen(ctx context.Context, r *run.Run) error {
	if r.Awaits > 0 {
		if err := e.commits.loadPayloads(ctx, r.Payloads, e.commits.dropLost); err != nil {
			return err
		}
		e.cancelIncomplete(r, "the host stopped while the run was being accepted: submit it again")
		return nil
	}
	f, err := e.restore(ctx, r)
	if err == nil {
		err = e.fetchAll(ctx, r)
	}
	if err == nil {
		_, err = run.DecodeContinuation(r.Continuation)
	}
	if err == nil {
		err = e.keepLarge(ctx, r)
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if err != nil {
		return e.abandon(ctx, r, err)
	}
	o := e.newOpenRun(r, f)
	if r.State == run.Pending {
		e.enter(o)
		return nil
	}
	o.resumed = true
	e.runLimits.hold(o)
	e.resume(o)
	return nil
}

// fetchAll loads the large values of a run. It fails if one is lost permanently.
func (e *executor) fetchAll(ctx context.Context, r *run.Run) error {
	var lost error
	err := e.commits.loadPayloads(ctx, r.Payloads, func(_ *json.RawMessage, err error) { lost = err })
	return cmp.Or(err, lost)
}

// keepLarge stores large values that are not blobs yet: commits of version 1 contain
// them, snapshots do not.
func (e *executor) keepLarge(ctx context.Context, r *run.Run) error {
	s, err := wire.NewSnapshot(run.NewShard())
	if err == nil {
		err = s.Add(r)
	}
	if err != nil {
		return err
	}
	return e.commits.blobs.keep(ctx, firstGeneration, s.Blobs())
}

func (e *executor) restore(ctx context.Context, r *run.Run) (*flows.Flow, error) {
	set := e.sets[r.Definition]
	if set == nil {
		definition := e.commits.shard.Definitions[r.Definition]
		if definition == nil {
			return nil, fmt.Errorf("the journal does not hold definition %s", r.Definition)
		}
		var err error
		if set, err = e.config.Restore(ctx, definition); err != nil {
			return nil, err
		}
		e.sets[r.Definition] = set
	}
	if f := set.Flow(r.Flow); f != nil {
		return f, nil
	}
	return nil, fmt.Errorf("definition %s has no flow %q", r.Definition, r.Flow)
}

// abandon ends a run whose flow can no longer be loaded: its modules are gone, or this
// version does not accept the files.
func (e *executor) abandon(ctx context.Context, r *run.Run, why error) error {
	if err := e.commits.loadPayloads(ctx, r.Payloads, e.commits.dropLost); err != nil {
		return err
	}
	e.log.Error("a run cannot be continued", "run", r.ID, "flow", r.Flow, "error", why)
	failure := &run.Failure{Outcome: run.OutcomeRejected, Code: run.CodeDefinition, Message: why.Error()}
	for _, t := range r.Tasks {
		ref := t.TaskRef
		switch {
		case t.Waits():
			e.commits.record(run.Event{Run: r.ID, At: e.clock.now(), Data: &run.WaitEnded{TaskRef: ref, State: run.Canceled, Failure: failure}})
		case t.State == run.Running:
			e.commits.record(run.Event{Run: r.ID, At: e.clock.now(), Data: &run.AttemptFinished{
				TaskRef: ref, Attempt: t.Attempts, Outcome: run.OutcomeLost, Failure: failure,
			}})
		case t.State == run.Ready || t.State == run.Waiting:
			e.commits.record(run.Event{Run: r.ID, At: e.clock.now(), Data: &run.TaskEnded{TaskRef: ref, State: run.Canceled, Failure: failure}})
		}
	}
	e.endRun(r, &run.Finished{State: run.Failed, Failure: failure}, func(after *afterFinish, err error) {
		e.shard.Forget(r.ID)
		if err == nil {
			e.continueAfter(after)
		}
	})
	return nil
}
