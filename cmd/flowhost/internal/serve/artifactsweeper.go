package serve

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"github.com/flowhost/flowhost/bus/artifacts"
	"github.com/flowhost/flowhost/engine"
	"github.com/flowhost/flowhost/run"
)

const (
	artifactSweepEvery = time.Hour        // with a tenth more or less, and first so long after the start
	artifactSweepTime  = 10 * time.Minute // bounds one sweep
)

// artifactSweeper removes artifacts to which no run refers. There is one for a journal: the
// host that leads it.
type artifactSweeper struct {
	store interface {
		Sweep(ctx context.Context, referenced func(digest string) (bool, error), now time.Time) (artifacts.Swept, error)
	}
	runs interface { // that are open, or whose records are on their way to the history
		Payloads(ctx context.Context, visit func(json.RawMessage)) error
	}
	history interface { // of finished runs
		Settle(ctx context.Context) error
		RefersTo(ctx context.Context, digest string) (bool, error)
	}
	log *slog.Logger

	removed, bytes atomic.Int64
}

// ArtifactStats are what sweeps have removed since the start.
type ArtifactStats struct {
	Removed int64 `json:"removed"`
	Bytes   int64 `json:"removed_bytes"`
}

func (s *artifactSweeper) stats() ArtifactStats {
	return ArtifactStats{Removed: s.removed.Load(), Bytes: s.bytes.Load()}
}

// Run sweeps every hour until ctx ends.
func (s *artifactSweeper) Run(ctx context.Context) {
	next := time.NewTimer(artifactSweepPause())
	defer next.Stop()
	for {
		select {
		case now := <-next.C:
			if err := s.sweep(ctx, now); err != nil && ctx.Err() == nil && !errors.Is(err, engine.ErrStopped) {
				s.log.Warn("artifacts that are not needed could not all be removed, the next sweep tries again", "error", err)
			}
			next.Reset(artifactSweepPause())
		case <-ctx.Done():
			return
		}
	}
}

func artifactSweepPause() time.Duration {
	return artifactSweepEvery*9/10 + rand.N(artifactSweepEvery/5)
}

// sweep removes what nothing has referred to for the store's grace. A run that ends meanwhile
// is seen as one that is open or, once the history has settled, in the history: what refers
// to an artifact is asked for in the order in which a run passes through these.
func (s *artifactSweeper) sweep(ctx context.Context, now time.Time) error {
	ctx, cancel := context.WithTimeout(ctx, artifactSweepTime)
	defer cancel()
	mentioned := map[string]bool{}
	err := s.runs.Payloads(ctx, func(payload json.RawMessage) {
		for digest := range run.Digests(payload) {
			mentioned[digest] = true
		}
	})
	if err == nil {
		err = s.history.Settle(ctx)
	}
	if err != nil {
		return err
	}
	swept, err := s.store.Sweep(ctx, func(digest string) (bool, error) {
		if mentioned[digest] {
			return true, nil
		}
		return s.history.RefersTo(ctx, digest)
	}, now)
	if swept.Artifacts > 0 {
		s.removed.Add(int64(swept.Artifacts))
		s.bytes.Add(swept.Bytes)
		s.log.Info("artifacts removed that no run refers to", "artifacts", swept.Artifacts, "bytes", swept.Bytes)
	}
	return err
}
