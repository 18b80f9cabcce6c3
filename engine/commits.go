package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync/atomic"
	"time"

	"github.com/flowhost/flowhost/run"
	"github.com/flowhost/flowhost/run/wire"
)

const (
	maxBatch      = 512 << 10 // bytes after which a commit takes no further events
	maxUnsaved    = 4 << 20   // bytes of events on their way to the journal
	maxOutbox     = 64        // commits that observers may be behind
	maxUnnotified = 16 << 10  // events in them: each holds its event, the last one of a run its record
	maxPayload    = 16 << 20  // bytes of one JSON value of an event
	maxSpare      = 4         // emptied commits that are kept for their memory
)

// batch is one commit with everything that waits for it.
type batch struct {
	commit   *wire.Commit
	closed   bool // takes no further events
	awaited  bool // somebody waits for it
	follows  int  // the generation of the snapshot that it follows
	size     int  // bytes, with what its events refer to
	notices  []run.Notice
	then     []func() // run on the loop once the commit is durable
	revision uint64
	sum      uint32 // of the stored commit
	err      error
}

// commitLog keeps the state of all runs: it applies events, makes them durable in
// commits, gives them to the observers and stores snapshots of the state. The loop owns
// it, except for the fields of its goroutines, the committer, the notifier and the
// compactor.
type commitLog struct {
	config *Config
	log    *slog.Logger

	// What the engine does with it.
	applied  func(*run.Run, run.Event)  // after each event that is recorded; the run is nil for an event of none
	recordOf func(*run.Run) *run.Record // of a run that has just finished
	fail     func(error)                // ends the loop

	toCommitter   chan *batch
	fromCommitter chan *batch
	toNotifier    chan *batch
	fromNotifier  chan []run.Notice // emptied, for their memory
	sweeps        chan sweep        // to the committer
	toCompactor   chan finishedSnapshot
	compacted     chan struct{} // from the compactor
	notified      atomic.Uint64 // the revision up to which the observers were notified
	blobs         blobs         // of the committer
	taskObservers bool          // an observer wants the events of tasks

	shard      *run.Shard
	pending    []*batch       // not given to the committer yet; the last one is still growing
	inFlight   *batch         // at the committer
	unsaved    int            // bytes in pending and inFlight
	hold       *time.Timer    // fires when the growing batch has taken events for long enough
	holdOver   bool           // it has
	spare      []*wire.Commit // emptied
	outbox     []*batch       // durable, not given to the notifier yet
	unnotified int            // events in outbox
	revision   uint64         // of the last durable commit

	snapshot   *snapshot // being written
	compacting bool      // the compactor has one
	generation int       // of the snapshot that was begun last
	snapshotAt time.Time // when it was begun
	events     int       // since then
	ticked     bool      // the snapshot may be old enough for another one
}

func newCommitLog(config *Config) *commitLog {
	l := &commitLog{
		config: config, log: config.Log,
		toCommitter: make(chan *batch, 1), fromCommitter: make(chan *batch, 1), toNotifier: make(chan *batch), fromNotifier: make(chan []run.Notice, maxSpare),
		sweeps: make(chan sweep), toCompactor: make(chan finishedSnapshot, 1), compacted: make(chan struct{}),
		shard: run.NewShard(), generation: firstGeneration, hold: time.NewTimer(time.Hour),
	}
	l.hold.Stop()
	for _, o := range config.Observers {
		l.taskObservers = l.taskObservers || !o.RunsOnly
	}
	l.blobs = blobs{store: config.Blobs, log: config.Log, withRetry: l.withRetry, stored: map[string]int{}}
	return l
}

// SizeError is returned for events that do not fit into one record of the journal.
type SizeError struct {
	Size, Limit int
}

func (e *SizeError) Error() string {
	return fmt.Sprintf("%d bytes are more than the %d that the journal accepts", e.Size, e.Limit)
}

// fits refuses JSON that is too large to be recorded.
func fits(payload json.RawMessage) error {
	if len(payload) > maxPayload {
		return &SizeError{Size: len(payload), Limit: maxPayload}
	}
	return nil
}

// applied follows up on an event that has just been recorded; r is nil for an event of
// no run.
func (e *executor) applied(r *run.Run, event run.Event) {
	e.simRecorded(r, event)
	if len(e.watchers.byRun) > 0 && r != nil {
		e.watchers.changed(r)
	}
}

// record applies events that become durable together, and adds them to the growing
// batch. If they are too large, nothing has happened. Any other error is a mistake of
// the engine and ends the loop.
func (l *commitLog) record(events ...run.Event) error {
	b, err := l.enroll(events)
	if err != nil {
		return err
	}
	index := b.commit.Len() - len(events)
	for i, event := range events {
		l.preserve(event.Run)
		r, err := l.shard.Apply(event)
		if err != nil {
			l.fail(err)
			return errInternal
		}
		l.events++
		l.applied(r, event)
		if l.observed(event.Data) {
			if b.notices == nil {
				b.notices = l.spareNotices()
			}
			b.notices = append(b.notices, l.notice(r, event, index+i))
		}
	}
	return nil
}

// observed reports whether an observer wants such an event.
func (l *commitLog) observed(data run.EventData) bool {
	return l.taskObservers || len(l.config.Observers) > 0 && !run.OfTask(data)
}

// enroll adds events to the batch that has room for them.
func (l *commitLog) enroll(events []run.Event) (*batch, error) {
	if n := len(l.pending); n > 0 && !l.pending[n-1].closed {
		last := l.pending[n-1]
		if fits, err := last.commit.AddWithin(min(maxBatch, l.config.Journal.Limit()), events...); err != nil || fits {
			return last, l.enrolled(last, err)
		}
	}
	b := &batch{commit: l.spareCommit(), follows: l.generation}
	fits, err := b.commit.AddWithin(l.config.Journal.Limit(), events...)
	if err == nil && !fits {
		return nil, l.tooLarge(b.commit, events)
	}
	l.pending = append(l.pending, b)
	if l.config.CommitHold > 0 {
		l.hold.Reset(l.config.CommitHold)
		l.holdOver = false
	}
	return b, l.enrolled(b, err)
}

// enrolled accounts for the growth of a batch.
func (l *commitLog) enrolled(b *batch, err error) error {
	if err != nil {
		l.fail(err)
		return errInternal
	}
	size := b.commit.Size()
	for _, blob := range b.commit.Blobs() {
		size += len(blob.Data)
	}
	l.unsaved += size - b.size
	b.size = size
	return nil
}

func (l *commitLog) tooLarge(c *wire.Commit, events []run.Event) error {
	if err := c.Add(events...); err != nil {
		return err
	}
	err := &SizeError{Size: c.Size(), Limit: l.config.Journal.Limit()}
	l.recycle(c)
	return err
}

func (l *commitLog) spareCommit() *wire.Commit {
	n := len(l.spare)
	if n == 0 {
		return new(wire.Commit)
	}
	c := l.spare[n-1]
	l.spare = l.spare[:n-1]
	return c
}

func (l *commitLog) recycle(c *wire.Commit) {
	if len(l.spare) < maxSpare {
		c.Reset()
		l.spare = append(l.spare, c)
	}
}

// afterCommit runs f on the loop once everything recorded so far is durable. Somebody waits
// for that.
func (l *commitLog) afterCommit(f func()) {
	if n := len(l.pending); n > 0 {
		l.pending[n-1].awaited = true
	}
	l.onCommit(f)
}

// onCommit is afterCommit when nobody waits.
func (l *commitLog) onCommit(f func()) {
	switch {
	case len(l.pending) > 0:
		last := l.pending[len(l.pending)-1]
		last.then = append(last.then, f)
	case l.inFlight != nil:
		l.inFlight.then = append(l.inFlight.then, f)
	default:
		f()
	}
}

// congested reports whether the loop must let journal and observers catch up.
func (l *commitLog) congested() bool {
	return l.unsaved > maxUnsaved || len(l.outbox) > maxOutbox || l.unnotified > maxUnnotified
}

// nextCommit gives the committer's channel and the batch to send, or nil while a
// commit is being written, or held: events collect meanwhile, so that commits grow with the
// load.
func (l *commitLog) nextCommit() (chan<- *batch, *batch) {
	if l.inFlight != nil || len(l.pending) == 0 || l.held() {
		return nil, nil
	}
	return l.toCommitter, l.pending[0]
}

// held reports whether the next commit takes further events, since nobody waits for it.
func (l *commitLog) held() bool {
	return l.config.CommitHold > 0 && !l.holdOver && len(l.pending) == 1 && !l.pending[0].awaited && !l.pending[0].closed
}

// holding gives the channel on which the end of the hold arrives, nil while no commit is
// held.
func (l *commitLog) holding() <-chan time.Time {
	if len(l.pending) == 0 || l.inFlight != nil || !l.held() {
		return nil
	}
	return l.hold.C
}

func (l *commitLog) sent(b *batch) {
	l.inFlight = b
	l.pending = slices.Delete(l.pending, 0, 1)
}

func (l *commitLog) committed(b *batch) {
	if b.err != nil {
		l.fail(fmt.Errorf("the journal: %w", b.err))
		return
	}
	l.inFlight = nil
	l.revision = b.revision
	l.unsaved -= b.size
	l.recycle(b.commit)
	b.commit = nil
	if l.hasListeners() {
		l.outbox = append(l.outbox, b)
		l.unnotified += len(b.notices)
	}
	for _, f := range b.then {
		f()
	}
	b.then = nil
}

// committer appends one commit at a time, after the blobs that its events refer to,
// and removes blobs that are no longer needed. It owns the journal's revision and the
// blobs.
func (l *commitLog) committer(ctx context.Context, revision uint64) {
	var doomed []string // listed before a commit, removed after it: the journal was still ours then
	for {
		select {
		case b := <-l.toCommitter:
			b.err = l.blobs.keep(ctx, b.follows, b.commit.Blobs())
			if b.err == nil {
				b.revision, b.sum, b.err = l.append(ctx, revision, b.commit)
			}
			revision = b.revision
			l.fromCommitter <- b
			if b.err != nil {
				return
			}
			l.blobs.remove(ctx, doomed)
			doomed = nil
		case sweep := <-l.sweeps:
			doomed = l.blobs.unreferenced(ctx, sweep)
		case <-ctx.Done():
			return
		}
	}
}

// append repeats an append until the journal accepts it: an accepted run must not be
// lost because the journal is unavailable for a while.
func (l *commitLog) append(ctx context.Context, after uint64, c *wire.Commit) (revision uint64, sum uint32, err error) {
	sealed := c.Seal(after)
	err = l.withRetry(ctx, "the journal accepts no commit; trying again", func() (err error) {
		revision, err = l.config.Journal.Append(ctx, after, sealed)
		return err
	})
	return revision, wire.CommitSum(sealed), err
}

// withRetry repeats f until it succeeds, another writer has taken the journal, or ctx
// ends.
func (l *commitLog) withRetry(ctx context.Context, complaint string, f func() error) error {
	for delay := 100 * time.Millisecond; ; delay = min(2*delay, 5*time.Second) {
		err := f()
		if err == nil || errors.Is(err, run.ErrFenced) {
			return err
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		l.log.Error(complaint, "error", err, "in", delay)
		select {
		case <-time.After(delay):
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}
