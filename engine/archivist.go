package engine

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// archive is what the archivist knows of the stored snapshots.
type archive struct {
	newest, older *finishedSnapshot // nil when there is none; without their bytes
}

// archivist stores snapshots, one at a time, and lets the journal forget what
// two of them and all observers hold.
func (e *Engine) archivist(ctx context.Context, a archive) {
	for {
		select {
		case s := <-e.snapshots:
			if err := e.store(ctx, &a, s); err != nil && ctx.Err() == nil {
				e.log.Warn("the journal is not shortened; the next snapshot tries again", "revision", s.revision, "error", err)
			}
			select {
			case e.archived <- struct{}{}:
			case <-ctx.Done():
				return
			}
		case <-ctx.Done():
			return
		}
	}
}

func (e *Engine) store(ctx context.Context, a *archive, s finishedSnapshot) error {
	if err := e.config.Snapshots.Put(ctx, snapshotName(s.revision), s.bytes); err != nil {
		return fmt.Errorf("storing the snapshot: %w", err)
	}
	e.log.Debug("snapshot", "revision", s.revision, "open_runs", s.runs, "bytes", len(s.bytes))
	s.bytes = nil
	a.newest, a.older = &s, a.newest
	if a.older == nil {
		return nil
	}
	return e.shorten(ctx, *a)
}

// shorten removes commits up to the older one of two snapshots: when the newest
// turns out to be damaged, the older one and the journal make up for it.
func (e *Engine) shorten(ctx context.Context, a archive) error {
	if told := e.told.Load(); len(e.config.Observers) > 0 && told < a.older.revision {
		return fmt.Errorf("observers are at revision %d", told)
	}
	for _, o := range e.config.Observers {
		if err := o.Observer.Flush(ctx); err != nil {
			return fmt.Errorf("an observer: %w", err)
		}
	}
	if err := e.config.Journal.Compact(ctx, a.older.revision); err != nil {
		return fmt.Errorf("removing commits: %w", err)
	}
	if err := e.removeSnapshots(ctx, a); err != nil {
		return err
	}
	if e.config.Blobs != nil {
		named := make(map[string]struct{}, len(a.newest.blobs)+len(a.older.blobs))
		for _, s := range []*finishedSnapshot{a.newest, a.older} {
			for name := range s.blobs {
				named[name] = struct{}{}
			}
		}
		select {
		case e.sweeps <- sweep{generation: a.newest.generation, named: named}:
		case <-ctx.Done():
		}
	}
	return nil
}

func (e *Engine) removeSnapshots(ctx context.Context, a archive) error {
	names, err := e.config.Snapshots.List(ctx)
	if err != nil {
		return fmt.Errorf("listing snapshots: %w", err)
	}
	for _, name := range names {
		if revision, ok := snapshotRevision(name); ok && revision < a.older.revision {
			if err := e.config.Snapshots.Delete(ctx, name); err != nil {
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
