package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/flowhost/flowhost/run"
)

// recovery is the reading of what earlier processes have left.
type recovery struct {
	*Engine
	archive archive
	last    uint64 // revision of what has been read so far
	read    int    // events of the journal
}

// recover reads the newest snapshot that serves and the journal after it, and
// takes up every run that is not finished.
func (e *Engine) recover(ctx context.Context) (*recovery, error) {
	r := &recovery{Engine: e}
	if err := r.readAll(ctx); err != nil {
		return nil, err
	}
	e.revision, e.events = r.last, r.read
	e.told.Store(r.last)
	if err := e.takeUpAll(ctx); err != nil {
		return nil, err
	}
	return r, e.fault
}

func (r *recovery) readAll(ctx context.Context) error {
	var revisions []uint64
	if r.config.Snapshots != nil {
		names, err := r.config.Snapshots.List(ctx)
		if err != nil {
			return fmt.Errorf("the snapshots cannot be listed: %w", err)
		}
		revisions = r.inOrder(revisionsOf(names))
	}
	for _, revision := range revisions {
		shard, err := r.load(ctx, revision)
		if err == nil {
			r.shard, r.last = shard, revision
			r.archive.newest = &finishedSnapshot{revision: revision, generation: firstGeneration}
			break
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		r.log.Error("a snapshot cannot be used; an older one and more of the journal take its place", "revision", revision, "error", err)
	}
	from := r.last
	err := r.config.Journal.Replay(ctx, from, func(revision uint64, commit []byte) error {
		return r.replay(ctx, revision, commit)
	})
	if err != nil {
		return fmt.Errorf("the journal cannot be read: %w", err)
	}
	if err := r.endReached(); err != nil {
		return err
	}
	r.log.Info("the journal is read", "snapshot", from, "revision", r.last, "events", r.read, "unfinished_runs", len(r.shard.Runs))
	return nil
}

// inOrder puts those snapshots first, the newest of them at the head, that no
// observer is behind: what happened since is read again and told.
func (r *recovery) inOrder(revisions []uint64) []uint64 {
	behind := uint64(math.MaxUint64)
	for _, o := range r.config.Observers {
		if o.CatchUp {
			behind = min(behind, o.Seen.Revision)
		}
	}
	slices.SortStableFunc(revisions, func(a, b uint64) int {
		switch {
		case (a <= behind) == (b <= behind):
			return 0
		case a <= behind:
			return -1
		}
		return 1
	})
	return revisions
}

// load gives the state of a snapshot that the journal goes on from.
func (r *recovery) load(ctx context.Context, revision uint64) (*run.Shard, error) {
	stored, err := r.config.Snapshots.Get(ctx, snapshotName(revision))
	if err != nil {
		return nil, err
	}
	shard, of, err := run.DecodeSnapshot(stored)
	if err != nil {
		return nil, err
	}
	if of != revision {
		return nil, fmt.Errorf("it is %w: it is of revision %d", run.ErrDamaged, of)
	}
	if err := r.reaches(ctx, revision); err != nil {
		return nil, err
	}
	for _, open := range shard.Runs {
		open.Payloads(r.blobs.found)
	}
	return shard, nil
}

// LostEndError says that the journal ends before what observers have been told.
type LostEndError struct {
	Last uint64 // the last revision that the journal holds
	Told uint64 // the revision that an observer knows
}

func (e *LostEndError) Error() string {
	return fmt.Sprintf("the journal ends at revision %d, and events up to revision %d were published: its end is lost. "+
		"Restore a copy of the data folder, or accept the loss: what happened after revision %d is forgotten then, "+
		"runs that were under way go on from there, and runs that were accepted since are gone",
		e.Last, e.Told, e.Last)
}

// endReached checks that the journal is as long as the observers know it.
func (r *recovery) endReached() error {
	for _, o := range r.config.Observers {
		if !o.CatchUp || o.Seen.Revision <= r.last {
			continue
		}
		lost := &LostEndError{Last: r.last, Told: o.Seen.Revision}
		if !r.config.AcceptLoss {
			return lost
		}
		r.log.Error("a loss is accepted", "error", lost)
	}
	return nil
}

var errEnough = errors.New("enough is read")

// reaches checks that the journal holds the revision, or the one after it: it
// would not when it had lost its end.
func (r *recovery) reaches(ctx context.Context, revision uint64) error {
	found := false
	err := r.config.Journal.Replay(ctx, revision-1, func(first uint64, stored []byte) error {
		commit, err := run.DecodeCommit(stored)
		found = first == revision || err == nil && commit.After == revision
		return errEnough
	})
	if err != nil && !errors.Is(err, errEnough) {
		return err
	}
	if !found {
		return errors.New("the journal does not reach it")
	}
	return nil
}

// ChainError says that commits are missing in the journal.
type ChainError struct {
	Last     uint64 // the last revision that could be read
	Revision uint64 // the first one after the gap
	After    uint64 // the one that it follows
}

func (e *ChainError) Error() string {
	return fmt.Sprintf("revision %d follows %d, and the last one that can be read before it is %d: "+
		"the commits between are lost, or the snapshot that held them. Everything up to revision %d can be salvaged: "+
		"restore a copy of the data folder, or move the folder away and begin with an empty one",
		e.Revision, e.After, e.Last, e.Last)
}

// replay applies one commit, and tells the observers what they have not been
// told yet.
func (r *recovery) replay(ctx context.Context, revision uint64, stored []byte) error {
	commit, err := run.DecodeCommit(stored)
	if err != nil {
		return fmt.Errorf("revision %d: %w", revision, err)
	}
	if commit.After != run.UnknownRevision && commit.After != r.last {
		return &ChainError{Last: r.last, Revision: revision, After: commit.After}
	}
	for i, event := range commit.Events {
		event.Payloads(r.blobs.found)
		changed, err := r.shard.Apply(event)
		if err != nil {
			return fmt.Errorf("revision %d: %w", revision, err)
		}
		if err := r.tellAgain(ctx, changed, event, Place{revision, i}); err != nil {
			return err
		}
		if changed != nil && changed.State.Done() {
			r.shard.Forget(changed.ID)
		}
	}
	r.last = revision
	r.read += len(commit.Events)
	return nil
}

// tellAgain tells those observers of an event that have not seen it.
func (r *recovery) tellAgain(ctx context.Context, changed *run.Run, event run.Event, at Place) error {
	if !slices.ContainsFunc(r.config.Observers, func(o Observation) bool { return o.unseen(at) }) {
		return nil
	}
	if err := r.complete(ctx, event.Payloads, r.missing); err != nil {
		return err
	}
	if _, done := event.Data.(*run.Finished); done {
		if err := r.complete(ctx, changed.Payloads, r.missing); err != nil {
			return err
		}
	}
	n := r.notice(changed, event, at.Index)
	n.Revision = at.Revision
	for _, o := range r.config.Observers {
		if o.unseen(at) {
			r.tell(ctx, o.Observer, n)
		}
	}
	return nil
}

// complete fetches what is stored apart, and calls lost for what is gone for good.
func (e *Engine) complete(ctx context.Context, payloads func(func(*json.RawMessage)), lost func(*json.RawMessage, error)) error {
	var failed error
	payloads(func(p *json.RawMessage) {
		err := e.insist(ctx, "a large value cannot be read; trying again", func() error {
			err := e.blobs.fetch(ctx, p)
			if blob := (*BlobError)(nil); errors.As(err, &blob) && blob.lasting() {
				lost(p, err)
				return nil
			}
			return err
		})
		if err != nil {
			failed = err
		}
	})
	return failed
}

// missing goes on without a value that is lost.
func (e *Engine) missing(p *json.RawMessage, err error) {
	e.log.Error("a large value is lost", "error", err)
	*p = nil
}
