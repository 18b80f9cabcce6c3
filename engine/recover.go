package engine

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/flowhost/flowhost/flows"
	"github.com/flowhost/flowhost/run"
)

// recover folds the journal into the state of the shard and takes up every run
// that is not finished. It gives the journal's last revision.
func (e *Engine) recover(ctx context.Context) (uint64, error) {
	var last uint64
	err := e.config.Journal.Replay(ctx, 0, func(revision uint64, commit []byte) error {
		last = revision
		return e.replay(ctx, revision, commit)
	})
	if err != nil {
		return 0, fmt.Errorf("the journal cannot be read: %w", err)
	}
	unfinished := make([]*run.Run, 0, len(e.shard.Runs))
	for _, r := range e.shard.Runs {
		unfinished = append(unfinished, r)
	}
	slices.SortFunc(unfinished, func(a, b *run.Run) int { return cmp.Compare(a.ID, b.ID) })
	for _, r := range unfinished {
		if err := e.takeUp(ctx, r); err != nil {
			return 0, err
		}
	}
	e.log.Info("the journal is read", "revision", last, "unfinished_runs", len(unfinished))
	return last, e.fault
}

// replay applies one commit, and tells the observers what they have not been
// told yet.
func (e *Engine) replay(ctx context.Context, revision uint64, commit []byte) error {
	events, err := run.DecodeCommit(commit)
	if err != nil {
		return fmt.Errorf("revision %d: %w", revision, err)
	}
	for i, event := range events {
		r, err := e.shard.Apply(event)
		if err != nil {
			return fmt.Errorf("revision %d: %w", revision, err)
		}
		if e.untold(revision, i) {
			n := e.notice(r, event, i)
			n.Revision = revision
			e.tell(ctx, n)
		}
		if r != nil && r.State.Done() {
			e.shard.Forget(r.ID)
		}
	}
	return nil
}

func (e *Engine) untold(revision uint64, index int) bool {
	seen := e.config.Observed
	return e.config.CatchUp && (revision > seen.Revision || revision == seen.Revision && index > seen.Index)
}

// takeUp opens an unfinished run with the definition that it was accepted with.
func (e *Engine) takeUp(ctx context.Context, r *run.Run) error {
	f, err := e.restore(ctx, r)
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if err != nil {
		e.abandon(r, err)
		return nil
	}
	o := e.newOpenRun(r, f)
	if r.State == run.Pending {
		e.enter(o)
		return nil
	}
	if f.Concurrency != nil {
		e.gate(o).started++
		o.slot = true
	}
	e.resume(o)
	return nil
}

func (e *Engine) restore(ctx context.Context, r *run.Run) (*flows.Flow, error) {
	set := e.sets[r.Definition]
	if set == nil {
		definition := e.shard.Definitions[r.Definition]
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

// abandon ends a run whose flow cannot be loaded any more: its modules are gone,
// or this version does not accept the files.
func (e *Engine) abandon(r *run.Run, why error) {
	e.log.Error("a run cannot be continued", "run", r.ID, "flow", r.Flow, "error", why)
	failure := &run.Failure{Outcome: run.OutcomeRejected, Code: run.CodeDefinition, Message: why.Error()}
	for _, t := range r.Tasks {
		ref := t.TaskRef
		switch t.State {
		case run.Running:
			e.record(run.Event{Run: r.ID, At: now(), Data: &run.AttemptFinished{
				TaskRef: ref, Attempt: t.Attempts, Outcome: run.OutcomeLost, Failure: failure,
			}})
		case run.Ready, run.Waiting:
			e.record(run.Event{Run: r.ID, At: now(), Data: &run.TaskEnded{TaskRef: ref, State: run.Canceled, Failure: failure}})
		}
	}
	e.record(run.Event{Run: r.ID, At: now(), Data: &run.Finished{State: run.Failed, Failure: failure}})
	e.shard.Forget(r.ID)
}
