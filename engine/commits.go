package engine

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/flowhost/flowhost/run"
)

const (
	maxBatch   = 512 << 10 // bytes after which a commit takes no further events
	maxUnsaved = 4 << 20   // bytes of events on their way to the journal
	maxOutbox  = 64        // commits that observers may be behind
)

// batch is one commit with everything that waits for it.
type batch struct {
	commit   run.Commit
	notices  []run.Notice
	then     []func() // run on the loop once the commit is durable
	revision uint64
	err      error
}

// SizeError says that events do not fit into one record of the journal.
type SizeError struct {
	Size, Limit int
}

func (e *SizeError) Error() string {
	return fmt.Sprintf("%d bytes are more than one record of the journal can hold (%d)", e.Size, e.Limit)
}

// record applies events that become durable together and puts them into the
// growing batch. When they are too large, nothing has happened. Any other error
// is a mistake of the engine and ends the loop.
func (e *Engine) record(events ...run.Event) error {
	var encoded run.Commit
	if err := encoded.Add(events...); err != nil {
		e.fail(err)
		return errInternal
	}
	if encoded.Size() > e.config.Journal.Limit() {
		return &SizeError{Size: encoded.Size(), Limit: e.config.Journal.Limit()}
	}
	b := e.growing(encoded.Size())
	before := b.commit.Size()
	b.commit.Append(&encoded)
	e.unsaved += b.commit.Size() - before
	for _, event := range events {
		r, err := e.shard.Apply(event)
		if err != nil {
			e.fail(err)
			return errInternal
		}
		b.notices = append(b.notices, e.notice(r, event, len(b.notices)))
	}
	return nil
}

// growing is the batch that takes the next events of the given size.
func (e *Engine) growing(size int) *batch {
	if n := len(e.pending); n > 0 {
		if last := e.pending[n-1]; last.commit.Size()+size <= min(maxBatch, e.config.Journal.Limit()) {
			return last
		}
	}
	b := new(batch)
	e.pending = append(e.pending, b)
	return b
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
	return e.unsaved > maxUnsaved || len(e.outbox) > maxOutbox
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
	e.pending = e.pending[1:]
}

func (e *Engine) committed(b *batch) {
	if b.err != nil {
		e.fail(fmt.Errorf("the journal: %w", b.err))
		return
	}
	e.inFlight = nil
	e.unsaved -= b.commit.Size()
	for i := range b.notices {
		b.notices[i].Revision = b.revision
	}
	if len(e.config.Observers) > 0 {
		e.outbox = append(e.outbox, b)
	}
	for _, f := range b.then {
		f()
	}
	b.then = nil
}

// committer appends one commit at a time. It owns the journal's revision.
func (e *Engine) committer(ctx context.Context, revision uint64) {
	for {
		select {
		case b := <-e.commits:
			b.revision, b.err = e.append(ctx, revision, b)
			revision = b.revision
			e.written <- b
			if b.err != nil {
				return
			}
		case <-ctx.Done():
			return
		}
	}
}

// append repeats an append until the journal takes it: what was accepted must
// not be lost because the journal is away for a while.
func (e *Engine) append(ctx context.Context, after uint64, b *batch) (uint64, error) {
	for delay := 100 * time.Millisecond; ; delay = min(2*delay, 5*time.Second) {
		revision, err := e.config.Journal.Append(ctx, after, b.commit.Bytes())
		if err == nil || errors.Is(err, run.ErrFenced) {
			return revision, err
		}
		if ctx.Err() != nil {
			return 0, context.Cause(ctx)
		}
		e.log.Error("the journal takes no commit; trying again", "error", err, "in", delay)
		select {
		case <-time.After(delay):
		case <-ctx.Done():
			return 0, context.Cause(ctx)
		}
	}
}
