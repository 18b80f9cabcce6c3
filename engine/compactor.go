package engine

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"
)

// storedSnapshots is the compactor's knowledge of the stored snapshots.
type storedSnapshots struct {
	newest, older *finishedSnapshot // nil when there is none; without their bytes
}

// shortenAgain is how long after a failure the compactor tries to shorten the journal
// again. The cause, such as an observer that could not flush, may be gone by then; and
// a full journal accepts no commit and so never gets a next snapshot.
const shortenAgain = 10 * time.Second

// compactor stores snapshots, one at a time, and removes the commits that two
// snapshots and all observers hold.
func (l *commitLog) compactor(ctx context.Context, a storedSnapshots) {
	again := time.NewTimer(shortenAgain)
	defer again.Stop()
	again.Stop()
	for {
		var err error
		select {
		case s := <-l.toCompactor:
			if err = l.keepSnapshot(ctx, &a, s); err == nil {
				err = l.shorten(ctx, a)
			}
			select {
			case l.compacted <- struct{}{}:
			case <-ctx.Done():
				return
			}
		case <-again.C:
			err = l.shorten(ctx, a)
		case <-ctx.Done():
			return
		}
		again.Stop()
		if err != nil && ctx.Err() == nil {
			l.log.Warn("the journal could not be shortened; trying again", "error", err, "in", shortenAgain)
			again.Reset(shortenAgain)
		}
	}
}

func (l *commitLog) keepSnapshot(ctx context.Context, a *storedSnapshots, s finishedSnapshot) error {
	if err := l.config.Snapshots.Put(ctx, snapshotName(s.revision), s.bytes); err != nil {
		return fmt.Errorf("storing the snapshot of revision %d: %w", s.revision, err)
	}
	l.log.Debug("snapshot", "revision", s.revision, "open_runs", s.runs, "bytes", len(s.bytes))
	s.bytes = nil
	a.newest, a.older = &s, a.newest
	return nil
}

// shorten removes commits up to the older one of two snapshots: if the newest is
// damaged, the older one and the journal replace it.
func (l *commitLog) shorten(ctx context.Context, a storedSnapshots) error {
	if a.older == nil {
		return nil
	}
	if told := l.notified.Load(); len(l.config.Observers) > 0 && told < a.older.revision {
		return fmt.Errorf("observers are at revision %d, and the commits up to %d are to be removed", told, a.older.revision)
	}
	for _, o := range l.config.Observers {
		if err := o.Observer.Flush(ctx); err != nil {
			return fmt.Errorf("an observer: %w", err)
		}
	}
	if err := l.config.Journal.Compact(ctx, a.older.revision); err != nil {
		return fmt.Errorf("removing commits: %w", err)
	}
	if err := l.removeSnapshots(ctx, a); err != nil {
		return err
	}
	named := make(map[string]struct{}, len(a.newest.blobs)+len(a.older.blobs))
	maps.Copy(named, a.newest.blobs)
	maps.Copy(named, a.older.blobs)
	select {
	case l.sweeps <- sweep{generation: a.older.generation, named: named}:
	case <-ctx.Done():
	}
	return nil
}

func (l *commitLog) removeSnapshots(ctx context.Context, a storedSnapshots) error {
	names, err := l.config.Snapshots.List(ctx)
	if err != nil {
		return fmt.Errorf("listing snapshots: %w", err)
	}
	for _, name := range names {
		if revision, ok := snapshotRevision(name); ok && revision < a.older.revision {
			if err := l.config.Snapshots.Delete(ctx, name); err != nil {
				return fmt.Errorf("removing a snapshot: %w", err)
			}
		}
	}
	return nil
}

// Snapshots are named so that they sort by their revision.
const snapshotPrefix = "snapshot-"

func snapshotName(revision uint64) string { return fmt.Sprintf("%s%020d", snapshotPrefix, revision) }

func snapshotRevision(name string) (uint64, bool) {
	digits, ok := strings.CutPrefix(name, snapshotPrefix)
	revision, err := strconv.ParseUint(digits, 10, 64)
	return revision, ok && err == nil
}

// revisionsOf gives the revisions of the named snapshots, the newest first.
func revisionsOf(names []string) []uint64 {
	var revisions []uint64
	for _, name := range names {
		if revision, ok := snapshotRevision(name); ok {
			revisions = append(revisions, revision)
		}
	}
	slices.Sort(revisions)
	slices.Reverse(revisions)
	return revisions
}
