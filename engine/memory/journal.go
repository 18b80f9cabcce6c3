package memory

import (
	"bytes"
	"context"
	"fmt"
	"sync"

	"github.com/flowhost/flowhost/run"
)

// commitLimit is the limit of a journal on NATS with its default settings.
const commitLimit = 4 << 20

// Journal is an engine.Journal in memory. The zero value is empty and ready. It is
// safe for concurrent use.
type Journal struct {
	mu      sync.Mutex
	removed uint64   // revisions up to and including this one are compacted away
	commits [][]byte // of the revisions that follow
}

// NewJournal makes an empty journal.
func NewJournal() *Journal { return new(Journal) }

// Append is part of engine.Journal.
func (j *Journal) Append(ctx context.Context, after uint64, commit []byte) (uint64, error) {
	if err := ctx.Err(); err != nil {
		return 0, err
	}
	if len(commit) > commitLimit {
		return 0, fmt.Errorf("a commit of %d bytes is over the journal's limit of %d", len(commit), commitLimit)
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	last := j.last()
	if after == last {
		j.commits = append(j.commits, bytes.Clone(commit))
		return last + 1, nil
	}
	if last > 0 && after == last-1 && bytes.Equal(j.commits[len(j.commits)-1], commit) {
		return last, nil
	}
	return 0, run.ErrFenced
}

// last is the newest revision. Its commit is never removed.
func (j *Journal) last() uint64 { return j.removed + uint64(len(j.commits)) }

// Last is the newest revision, 0 while the journal is empty.
func (j *Journal) Last() uint64 {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.last()
}

// Removed is the newest revision that Compact has removed, 0 for none.
func (j *Journal) Removed() uint64 {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.removed
}

// Replay is part of engine.Journal.
func (j *Journal) Replay(ctx context.Context, after uint64, apply func(uint64, []byte) error) error {
	j.mu.Lock()
	commits, removed := j.commits, j.removed
	j.mu.Unlock()
	for i, commit := range commits {
		revision := removed + uint64(i) + 1
		if revision <= after {
			continue
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := apply(revision, bytes.Clone(commit)); err != nil {
			return err
		}
	}
	return nil
}

// Compact is part of engine.Journal.
func (j *Journal) Compact(ctx context.Context, upTo uint64) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	last := j.last()
	if last == 0 || min(upTo, last-1) <= j.removed {
		return nil
	}
	upTo = min(upTo, last-1)
	j.commits = append([][]byte(nil), j.commits[upTo-j.removed:]...) // so that the others can be collected
	j.removed = upTo
	return nil
}

// Limit is part of engine.Journal.
func (j *Journal) Limit() int { return commitLimit }
