package engine

import (
	"context"
	"errors"
	"time"

	"github.com/flowhost/flowhost/run"
	"github.com/flowhost/flowhost/run/wire"
)

// committer appends one commit at a time, after what its events refer to, and
// removes blobs that are not referred to any more. It owns the journal's
// revision and the blobs.
func (e *Engine) committer(ctx context.Context, revision uint64) {
	var doomed []string // listed before a commit, removed after it: the journal was still ours then
	for {
		select {
		case b := <-e.commits:
			b.err = e.blobs.keep(ctx, b.follows, b.commit.Blobs())
			if b.err == nil {
				b.revision, b.sum, b.err = e.append(ctx, revision, b.commit)
			}
			revision = b.revision
			e.written <- b
			if b.err != nil {
				return
			}
			e.blobs.remove(ctx, doomed)
			doomed = nil
		case sweep := <-e.sweeps:
			doomed = e.blobs.doomed(ctx, sweep)
		case <-ctx.Done():
			return
		}
	}
}

// append repeats an append until the journal takes it: what was accepted must
// not be lost because the journal is away for a while.
func (e *Engine) append(ctx context.Context, after uint64, c *wire.Commit) (revision uint64, sum uint32, err error) {
	sealed := c.Seal(after)
	err = e.insist(ctx, "the journal takes no commit; trying again", func() (err error) {
		revision, err = e.config.Journal.Append(ctx, after, sealed)
		return err
	})
	return revision, wire.CommitSum(sealed), err
}

// insist repeats what must not fail until it succeeds, the journal is somebody
// else's or ctx ends.
func (e *Engine) insist(ctx context.Context, complaint string, f func() error) error {
	for delay := 100 * time.Millisecond; ; delay = min(2*delay, 5*time.Second) {
		err := f()
		if err == nil || errors.Is(err, run.ErrFenced) {
			return err
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		e.log.Error(complaint, "error", err, "in", delay)
		select {
		case <-time.After(delay):
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}
