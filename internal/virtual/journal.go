package virtual

import (
	"context"

	"github.com/flowhost/flowhost/run"
)

// discardJournal counts its commits and discards them: nobody reads them, and a
// virtual run may be long.
type discardJournal struct {
	last uint64 // belongs to the engine's committer
}

// maxCommit is as generous as a journal on NATS with its default limits.
const maxCommit = 4 << 20

func (j *discardJournal) Append(ctx context.Context, after uint64, _ []byte) (uint64, error) {
	if err := ctx.Err(); err != nil {
		return 0, err
	}
	if after != j.last {
		return 0, run.ErrFenced
	}
	j.last++
	return j.last, nil
}

func (j *discardJournal) Replay(context.Context, uint64, func(uint64, []byte) error) error {
	return nil
}

func (j *discardJournal) Compact(context.Context, uint64) error { return nil }

func (j *discardJournal) Limit() int { return maxCommit }
