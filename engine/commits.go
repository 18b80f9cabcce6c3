package engine

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/flowhost/flowhost/run"
	"github.com/flowhost/flowhost/run/wire"
)

const (
	maxBatch   = 512 << 10 // bytes after which a commit takes no further events
	maxUnsaved = 4 << 20   // bytes of events on their way to the journal
	maxOutbox  = 64        // commits that observers may be behind
	maxUntold  = 16 << 10  // events in them: each holds what it says, the last of a run its record
	maxPayload = 16 << 20  // bytes of one JSON value of an event
	maxSpare   = 4         // emptied commits that are kept for their memory
)

// batch is one commit with everything that waits for it.
type batch struct {
	commit   *wire.Commit
	closed   bool // takes no further events
	follows  int  // the generation of the snapshot that it follows
	size     int  // bytes, with what its events refer to
	notices  []run.Notice
	then     []func() // run on the loop once the commit is durable
	revision uint64
	sum      uint32 // of the stored commit
	err      error
}

// SizeError says that events do not fit into one record of the journal.
type SizeError struct {
	Size, Limit int
}

func (e *SizeError) Error() string {
	return fmt.Sprintf("%d bytes are more than the %d that the journal takes", e.Size, e.Limit)
}

// fits refuses JSON that is too large to be recorded.
func fits(payload json.RawMessage) error {
	if len(payload) > maxPayload {
		return &SizeError{Size: len(payload), Limit: maxPayload}
	}
	return nil
}

// record applies events that become durable together and puts them into the
// growing batch. When they are too large, nothing has happened. Any other error
// is a mistake of the engine and ends the loop.
func (e *Engine) record(events ...run.Event) error {
	b, err := e.enroll(events)
	if err != nil {
		return err
	}
	index := b.commit.Len() - len(events)
	for i, event := range events {
		e.preserve(event.Run)
		r, err := e.shard.Apply(event)
		if err != nil {
			e.fail(err)
			return errInternal
		}
		e.events++
		e.tellRecorded(event)
		if _, finished := event.Data.(*run.Finished); finished {
			e.conclude(r)
		}
		if e.observed(event.Data) {
			b.notices = append(b.notices, e.notice(r, event, index+i))
		}
		if len(e.watched) > 0 && r != nil {
			e.changed(r)
		}
	}
	return nil
}

// observed reports whether anybody is to be told of such an event.
func (e *Engine) observed(data run.EventData) bool {
	return e.taskObservers || len(e.config.Observers) > 0 && !run.OfTask(data)
}

// enroll adds events to the batch that takes them.
func (e *Engine) enroll(events []run.Event) (*batch, error) {
	if n := len(e.pending); n > 0 && !e.pending[n-1].closed {
		last := e.pending[n-1]
		if fits, err := last.commit.AddWithin(min(maxBatch, e.config.Journal.Limit()), events...); err != nil || fits {
			return last, e.enrolled(last, err)
		}
	}
	b := &batch{commit: e.spareCommit(), follows: e.generation}
	fits, err := b.commit.AddWithin(e.config.Journal.Limit(), events...)
	if err == nil && !fits {
		return nil, e.tooLarge(b.commit, events)
	}
	e.pending = append(e.pending, b)
	return b, e.enrolled(b, err)
}

// enrolled accounts for what a batch has grown by.
func (e *Engine) enrolled(b *batch, err error) error {
	if err != nil {
		e.fail(err)
		return errInternal
	}
	size := b.commit.Size()
	for _, blob := range b.commit.Blobs() {
		size += len(blob.Data)
	}
	e.unsaved += size - b.size
	b.size = size
	return nil
}

func (e *Engine) tooLarge(c *wire.Commit, events []run.Event) error {
	if err := c.Add(events...); err != nil {
		return err
	}
	err := &SizeError{Size: c.Size(), Limit: e.config.Journal.Limit()}
	e.recycle(c)
	return err
}

func (e *Engine) spareCommit() *wire.Commit {
	n := len(e.spare)
	if n == 0 {
		return new(wire.Commit)
	}
	c := e.spare[n-1]
	e.spare = e.spare[:n-1]
	return c
}

func (e *Engine) recycle(c *wire.Commit) {
	if len(e.spare) < maxSpare {
		c.Reset()
		e.spare = append(e.spare, c)
	}
}

// afterCommit runs f on the loop once everything recorded so far is durable.
func (e *Engine) afterCommit(f func()) {
	switch {
	case len(e.pending) > 0:
		last := e.pending[len(e.pending)-1]
		last.then = append(last.then, f)
	case e.inFlight != nil:
		e.inFlight.then = append(e.inFlight.then, f)
	default:
		f()
	}
}

// congested reports whether the loop must let journal and observers catch up.
func (e *Engine) congested() bool {
	return e.unsaved > maxUnsaved || len(e.outbox) > maxOutbox || e.untold > maxUntold
}

// nextCommit gives the committer's channel and what to send on it, or nil while
// a commit is under way: events collect meanwhile, so that commits are as large
// as the load asks for.
func (e *Engine) nextCommit() (chan<- *batch, *batch) {
	if e.inFlight != nil || len(e.pending) == 0 {
		return nil, nil
	}
	return e.commits, e.pending[0]
}

func (e *Engine) sent(b *batch) {
	e.inFlight = b
	e.pending = slices.Delete(e.pending, 0, 1)
}

func (e *Engine) committed(b *batch) {
	if b.err != nil {
		e.fail(fmt.Errorf("the journal: %w", b.err))
		return
	}
	e.inFlight = nil
	e.revision = b.revision
	e.unsaved -= b.size
	e.recycle(b.commit)
	b.commit = nil
	if e.tells() {
		for i := range b.notices {
			b.notices[i].Revision, b.notices[i].Sum = b.revision, b.sum
		}
		e.outbox = append(e.outbox, b)
		e.untold += len(b.notices)
	}
	for _, f := range b.then {
		f()
	}
	b.then = nil
	e.count()
}
