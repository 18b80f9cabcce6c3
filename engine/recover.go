package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/flowhost/flowhost/run"
	"github.com/flowhost/flowhost/run/wire"
)

// recovery reads the state that earlier processes have left.
type recovery struct {
	*commitLog
	archive storedSnapshots
	last    uint64 // the last revision that has been read
	read    int    // events of the journal
}

// recover reads the newest usable snapshot and the journal after it, and reopens every
// run that is not finished.
func (e *executor) recover(ctx context.Context) (*recovery, error) {
	r := &recovery{commitLog: e.commits}
	if err := r.readAll(ctx); err != nil {
		return nil, err
	}
	e.shard = e.commits.shard
	e.forgetDefinitions() // a newer snapshot that could not be used has only the definitions that open runs need
	e.commits.revision, e.commits.events = r.last, r.read
	e.commits.notified.Store(r.last)
	if err := e.reopenAll(ctx); err != nil {
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
		revisions = revisionsOf(names)
	}
	from, err := r.begin(ctx, revisions)
	if err != nil {
		return err
	}
	err = r.config.Journal.Replay(ctx, from, func(revision uint64, commit []byte) error {
		return r.replay(ctx, revision, commit)
	})
	if err != nil {
		return fmt.Errorf("the journal cannot be read: %w", err)
	}
	if err := r.endReached(); err != nil {
		return err
	}
	r.log.Info("the journal is read", "snapshot", from, "revision", r.last, "events", r.read, "unfinished_runs", len(r.shard.Runs))
	return r.removeLost(ctx, revisions)
}

// begin loads the first usable state: a snapshot, or the empty state before the first
// commit, which is revision 0.
func (r *recovery) begin(ctx context.Context, revisions []uint64) (from uint64, err error) {
	candidates, err := r.inOrder(ctx, revisions)
	if err != nil {
		return 0, err
	}
	for _, revision := range candidates {
		shard, err := r.load(ctx, revision)
		if err == nil {
			r.shard, r.last = shard, revision
			if revision > 0 {
				r.archive.newest = &finishedSnapshot{revision: revision, generation: firstGeneration}
			}
			return revision, nil
		}
		if ctx.Err() != nil {
			return 0, context.Cause(ctx)
		}
		if revision > 0 {
			r.log.Error("snapshot unusable, falling back to an older one", "revision", revision, "error", err)
		}
	}
	if first, _, err := r.after(ctx, 0); first == 0 && len(revisions) > 0 {
		return 0, errors.Join(err, &ChainError{Last: 0, After: revisions[0]})
	}
	return 0, nil // the replay reports what is missing
}

// inOrder puts those states first, the newest of them at the head, that no observer is
// behind: events since then are read again, and the observers are notified of them. Of
// the other states, the older ones lead to more notices.
func (r *recovery) inOrder(ctx context.Context, revisions []uint64) ([]uint64, error) {
	var ahead, behind []uint64
	for _, revision := range revisions {
		seen, err := r.seen(ctx, revision)
		if err != nil {
			return nil, err
		}
		if seen {
			ahead = append(ahead, revision)
		} else {
			behind = append(behind, revision)
		}
	}
	slices.Reverse(behind)
	return slices.Concat(ahead, []uint64{0}, behind), nil
}

// seen reports whether all observers know everything up to a revision.
func (r *recovery) seen(ctx context.Context, revision uint64) (bool, error) {
	for _, o := range r.config.Observers {
		switch {
		case !o.CatchUp || o.Seen.Revision > revision:
		case o.Seen.Revision < revision:
			return false, nil
		default:
			first, commit, err := r.after(ctx, revision-1)
			if ctx.Err() != nil {
				return false, context.Cause(ctx)
			}
			if err != nil || commit != nil && first == revision && o.unseen(Place{revision, len(commit.Events) - 1}) {
				return false, nil // a journal that cannot be read there makes the snapshot unusable, too
			}
		}
	}
	return true, nil
}

// removeLost removes snapshots that lie after the journal's end: the journal has lost
// these revisions and will reuse them.
func (r *recovery) removeLost(ctx context.Context, revisions []uint64) error {
	for _, revision := range revisions {
		if revision <= r.last {
			continue
		}
		if err := r.config.Snapshots.Delete(ctx, snapshotName(revision)); err != nil {
			return fmt.Errorf("a snapshot of what the journal has lost cannot be removed: %w", err)
		}
	}
	return nil
}

// load gives the state of a snapshot from which the journal continues.
func (r *recovery) load(ctx context.Context, revision uint64) (*run.Shard, error) {
	if revision == 0 {
		return run.NewShard(), r.reaches(ctx, 0)
	}
	stored, err := r.config.Snapshots.Get(ctx, snapshotName(revision))
	if err != nil {
		return nil, err
	}
	shard, of, err := wire.DecodeSnapshot(stored)
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

// TruncatedError is returned for a journal that ends before what is known outside.
type TruncatedError struct {
	Last      uint64 // the last revision that the journal holds
	Published uint64 // the revision that is known outside
}

func (e *TruncatedError) Error() string {
	return fmt.Sprintf("the journal ends at revision %d, and revision %d is known outside: the journal has lost its end. "+
		"Restore a copy of the data directory, or accept the loss: events after revision %d are forgotten, "+
		"open runs resume from there, and runs that were accepted later are gone",
		e.Last, e.Published, e.Last)
}

// endReached checks that the journal reaches every revision that is known outside.
func (r *recovery) endReached() error {
	told := r.config.Published
	for _, o := range r.config.Observers {
		if o.CatchUp {
			told = max(told, o.Published, o.Seen.Revision)
		}
	}
	if told <= r.last {
		return nil
	}
	lost := &TruncatedError{Last: r.last, Published: told}
	if !r.config.AcceptLoss {
		return lost
	}
	r.log.Error("a loss is accepted", "error", lost)
	return nil
}

var errStopReplay = errors.New("enough is read")

// reaches checks that the journal holds the revision or the one after it, which it
// does not after losing its end. Revision 0 is before the first commit.
func (r *recovery) reaches(ctx context.Context, revision uint64) error {
	first, commit, err := r.after(ctx, max(revision, 1)-1)
	switch {
	case err != nil:
		return err
	case first > 0 && first == revision:
		return nil
	case commit != nil && commit.After == revision:
		return nil
	}
	return errors.New("the journal does not reach it")
}

// after gives the first commit after a revision, nil if it cannot be read, and its
// revision, 0 if there is none.
func (r *recovery) after(ctx context.Context, revision uint64) (first uint64, commit *wire.StoredCommit, err error) {
	err = r.config.Journal.Replay(ctx, revision, func(at uint64, stored []byte) error {
		first = at
		commit, _ = wire.DecodeCommit(stored)
		return errStopReplay
	})
	if errors.Is(err, errStopReplay) {
		err = nil
	}
	return first, commit, err
}

// ChainError is returned for a journal in which commits are missing.
type ChainError struct {
	Last     uint64 // the last revision that could be read
	Revision uint64 // the first one after the gap; 0 when there is none
	After    uint64 // the revision that it follows
}

func (e *ChainError) Error() string {
	if e.Revision == 0 {
		return fmt.Sprintf("there is a snapshot of revision %d, and the journal is empty: restore a copy of the data directory, "+
			"or move the directory away and start with an empty one", e.After)
	}
	return fmt.Sprintf("revision %d follows %d, and the last one that can be read before it is %d: "+
		"the commits between are lost, or the snapshot that held them. Everything up to revision %d can be salvaged: "+
		"restore a copy of the data directory, or move the directory away and start with an empty one",
		e.Revision, e.After, e.Last, e.Last)
}

// replay applies one commit, and notifies the observers of events that they have not
// seen.
func (r *recovery) replay(ctx context.Context, revision uint64, stored []byte) error {
	commit, err := wire.DecodeCommit(stored)
	if err != nil {
		return fmt.Errorf("revision %d: %w", revision, err)
	}
	if commit.After != r.last {
		return &ChainError{Last: r.last, Revision: revision, After: commit.After}
	}
	sum := wire.CommitSum(stored)
	for i, event := range commit.Events {
		event.Payloads(r.blobs.found)
		changed, err := r.shard.Apply(event)
		if err != nil {
			return fmt.Errorf("revision %d: %w", revision, err)
		}
		if err := r.notifyAgain(ctx, changed, event, Place{revision, i}, sum); err != nil {
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

// notifyAgain notifies those observers of an event that have not seen it. sum is the
// checksum of its commit.
func (r *recovery) notifyAgain(ctx context.Context, changed *run.Run, event run.Event, at Place, sum uint32) error {
	if !slices.ContainsFunc(r.config.Observers, func(o Observation) bool { return o.unseen(at) && o.wants(event.Data) }) {
		return nil
	}
	if err := r.loadPayloads(ctx, event.Payloads, r.dropLost); err != nil {
		return err
	}
	if _, done := event.Data.(*run.Finished); done {
		if err := r.loadPayloads(ctx, changed.Payloads, r.dropLost); err != nil {
			return err
		}
	}
	n := r.notice(changed, event, at.Index)
	n.Revision, n.Sum = at.Revision, sum
	for _, o := range r.config.Observers {
		if o.unseen(at) && o.wants(event.Data) {
			r.notify(ctx, o.Observer, n)
		}
	}
	return nil
}

// loadPayloads fetches the values that are stored as blobs, and calls lost for those
// that are lost permanently.
func (l *commitLog) loadPayloads(ctx context.Context, payloads func(func(*json.RawMessage)), lost func(*json.RawMessage, error)) error {
	var failed error
	payloads(func(p *json.RawMessage) {
		err := l.withRetry(ctx, "a large value cannot be read; trying again", func() error {
			err := l.blobs.fetch(ctx, p)
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

// dropLost continues without a value that is lost.
func (l *commitLog) dropLost(p *json.RawMessage, err error) {
	l.log.Error("a large value is lost", "error", err)
	*p = nil
}
