package engine

import (
	"cmp"
	"slices"
	"time"

	"github.com/flowhost/flowhost/run"
	"github.com/flowhost/flowhost/run/wire"
)

// A snapshot is the state at one revision. The loop writes it, a few runs in each turn;
// a run that is about to change is written before it does. So the snapshot is
// consistent, and no turn of the loop takes long.
const (
	firstGeneration = 1 // of the snapshot that the engine began with, if there was one

	snapshotTurn  = 64               // runs that one turn of the loop writes
	snapshotPause = 10 * time.Second // between two snapshots at least, for 50 000 events; less for less
	snapshotAge   = time.Minute      // after which a few events are enough for a snapshot
	snapshotShare = 8                // events for each open run, so that the cost stays small
)

// snapshot is a snapshot that is being written.
type snapshot struct {
	data       *wire.Snapshot
	left       map[run.ID]*run.Run // not written yet
	revision   uint64              // 0 until the commit before it is durable
	generation int
}

// finishedSnapshot is a snapshot on its way to the store.
type finishedSnapshot struct {
	bytes      []byte
	revision   uint64
	generation int
	blobs      map[string]struct{} // that it refers to
	runs       int
}

// snapshotDue reports whether enough has happened since the last snapshot.
func (l *commitLog) snapshotDue() bool {
	if l.snapshot != nil || l.compacting || l.config.Snapshots == nil || l.events == 0 {
		return false
	}
	enough := l.events >= max(l.config.SnapshotEvents, snapshotShare*len(l.shard.Runs))
	if !enough && !l.ticked {
		return false // not worth reading the clock
	}
	since := time.Since(l.snapshotAt)
	return enough && since >= l.pause() || since >= snapshotAge
}

// pause is the minimum delay before the next snapshot, for the sake of the commits,
// which share the disk with it.
func (l *commitLog) pause() time.Duration {
	return min(snapshotPause, snapshotPause/50_000*time.Duration(l.config.SnapshotEvents))
}

// beginSnapshot fixes the content: everything recorded so far is in the snapshot, and
// nothing that comes later.
func (l *commitLog) beginSnapshot() {
	data, err := wire.NewSnapshot(l.shard)
	if err != nil {
		l.fail(err)
		return
	}
	if n := len(l.pending); n > 0 {
		l.pending[n-1].closed = true
	}
	l.generation++
	s := &snapshot{data: data, left: make(map[run.ID]*run.Run, len(l.shard.Runs)), generation: l.generation}
	for id, r := range l.shard.Runs {
		s.left[id] = r
	}
	l.snapshot, l.events, l.ticked, l.snapshotAt = s, 0, false, time.Now()
	l.afterCommit(func() { s.revision = l.revision })
}

// always is ready at any time.
var always = func() <-chan struct{} {
	c := make(chan struct{})
	close(c)
	return c
}()

// writing is ready when the snapshot can be continued.
func (l *commitLog) writing() <-chan struct{} {
	if s := l.snapshot; s != nil && (len(s.left) > 0 || s.revision > 0) {
		return always
	}
	return nil
}

// preserve writes a run into the snapshot before it changes.
func (l *commitLog) preserve(id run.ID) {
	if l.snapshot == nil {
		return
	}
	if r := l.snapshot.left[id]; r != nil {
		l.write(r)
	}
}

func (l *commitLog) write(r *run.Run) bool {
	delete(l.snapshot.left, r.ID)
	err := l.snapshot.data.Add(r)
	if err != nil {
		l.fail(err)
	}
	return err == nil
}

// continueSnapshot writes some more runs, and passes the snapshot to the compactor
// once it is complete and its revision known.
func (l *commitLog) continueSnapshot() {
	s := l.snapshot
	n := 0
	for _, r := range s.left {
		if n++; n > snapshotTurn || !l.write(r) {
			return
		}
	}
	if s.revision == 0 {
		return
	}
	done := finishedSnapshot{revision: s.revision, generation: s.generation, runs: s.data.Runs(), blobs: map[string]struct{}{}}
	for _, blob := range s.data.Blobs() {
		done.blobs[blob.Name] = struct{}{}
	}
	done.bytes = s.data.Seal(s.revision)
	l.snapshot, l.compacting = nil, true
	l.toCompactor <- done // never blocks: there is one place, and one snapshot at a time
}

// forgetDefinitions drops the definitions that neither an open run nor a deployed flow
// needs, except those that were used last. It runs with a snapshot only, so that the
// state that is read from the snapshot has the same definitions.
func (e *executor) forgetDefinitions() {
	needed := make(map[string]struct{}, len(e.flows))
	for _, r := range e.shard.Runs {
		needed[r.Definition] = struct{}{}
	}
	var past []string
	for digest := range e.shard.Definitions {
		if _, ok := needed[digest]; !ok {
			past = append(past, digest)
		}
	}
	slices.SortFunc(past, func(a, b string) int { return cmp.Or(e.used[b].Compare(e.used[a]), cmp.Compare(a, b)) })
	for _, digest := range past[min(len(past), e.config.Definitions):] {
		delete(e.shard.Definitions, digest)
		delete(e.used, digest)
	}
	for _, f := range e.flows {
		needed[f.DefinitionDigest] = struct{}{}
	}
	for digest := range e.sets {
		if _, ok := needed[digest]; !ok {
			delete(e.sets, digest)
		}
	}
}
