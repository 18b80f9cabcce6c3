package rehearsal

import (
	"context"

	"github.com/flowhost/flowhost/run"
)

// forgetful is a journal that keeps count of its commits and nothing else: nobody
// reads it, and a rehearsal may be long.
type forgetful struct {
	last uint64 // belongs to the engine's committer
}

// maxCommit is as generous as a journal on NATS with its default limits.
const maxCommit = 4 << 20

func (j *forgetful) Append(ctx context.Context, after uint64, _ []byte) (uint64, error) {
	if err := ctx.Err(); err != nil {
		return 0, err
	}
	if after != j.last {
		return 0, run.ErrFenced
	}
	j.last++
	return j.last, nil
}

func (j *forgetful) Replay(context.Context, uint64, func(uint64, []byte) error) error { return nil }

func (j *forgetful) Compact(context.Context, uint64) error { return nil }

func (j *forgetful) Limit() int { return maxCommit }
