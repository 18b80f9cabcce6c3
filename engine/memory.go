package engine

import (
	"bytes"
	"context"
	"fmt"
	"sync"

	"github.com/flowhost/flowhost/run"
)

// memoryCommitLimit is as generous as a journal on NATS with its default limits.
const memoryCommitLimit = 4 << 20

// MemoryJournal is a Journal that lives as long as the process: for tests and
// for runs that nobody asked to keep. The zero value is empty and ready. It is
// safe for concurrent use.
type MemoryJournal struct {
	mu      sync.Mutex
	commits [][]byte
}

// NewMemoryJournal gives an empty journal.
func NewMemoryJournal() *MemoryJournal { return new(MemoryJournal) }

// Append is part of Journal.
func (j *MemoryJournal) Append(ctx context.Context, after uint64, commit []byte) (uint64, error) {
	if err := ctx.Err(); err != nil {
		return 0, err
	}
	if len(commit) > memoryCommitLimit {
		return 0, fmt.Errorf("a commit of %d bytes is over the journal's limit of %d", len(commit), memoryCommitLimit)
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	last := uint64(len(j.commits))
	if after == last {
		j.commits = append(j.commits, bytes.Clone(commit))
		return last + 1, nil
	}
	if after+1 == last && bytes.Equal(j.commits[after], commit) {
		return last, nil
	}
	return 0, run.ErrFenced
}

// Replay is part of Journal.
func (j *MemoryJournal) Replay(ctx context.Context, after uint64, apply func(uint64, []byte) error) error {
	j.mu.Lock()
	commits := j.commits
	j.mu.Unlock()
	for i := after; i < uint64(len(commits)); i++ {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := apply(i+1, bytes.Clone(commits[i])); err != nil {
			return err
		}
	}
	return nil
}

// Limit is part of Journal.
func (j *MemoryJournal) Limit() int { return memoryCommitLimit }
