package engine

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/flowhost/flowhost/engine/memory"
	"github.com/flowhost/flowhost/run"
)

// countedJournal counts commits.
type countedJournal struct {
	Journal
	commits atomic.Int64
}

func (j *countedJournal) Append(ctx context.Context, after uint64, commit []byte) (uint64, error) {
	j.commits.Add(1)
	return j.Journal.Append(ctx, after, commit)
}

const heldHCL = `
flow "f" {
  task "a" {
    plugin = "p"
    input  = trigger.payload
  }
}`

// A commit is held as long as nobody waits for it, and at most as long as is set.
func TestCommitHold(t *testing.T) {
	t.Parallel()
	const hold = time.Hour
	set := load(t, heldHCL)
	request := run.Request{Flow: "f", Trigger: run.Trigger{Kind: run.TriggerManual, Payload: []byte("1")}}
	for name, c := range map[string]struct {
		ask     func(*testing.T, *rig)
		commits int64
		took    time.Duration
	}{
		"who waits for the end needs one commit": {func(t *testing.T, r *rig) {
			r.wait(r.begin(request))
		}, 1, 0},
		"who waits for the receipt needs one of its own": {func(t *testing.T, r *rig) {
			r.wait(r.submit("f", "1"))
		}, 2, 0},
		"who comes after the end hurries the commit": {func(t *testing.T, r *rig) {
			id := r.begin(request)
			synctest.Wait() // the run has ended
			r.wait(id)
		}, 1, 0},
		"nobody waits": {func(t *testing.T, r *rig) {
			r.begin(request)
			synctest.Wait()
			if n := r.journal.(*countedJournal).commits.Load(); n != 0 {
				t.Errorf("%d commits at once", n)
			}
			time.Sleep(hold)
			synctest.Wait()
		}, 1, hold},
		"somebody waits for all": {func(t *testing.T, r *rig) {
			for range 3 {
				r.begin(request)
			}
			synctest.Wait()
			if err := r.Sync(t.Context()); err != nil {
				t.Error(err)
			}
		}, 1, 0},
		"the engine drains": {func(t *testing.T, r *rig) {
			r.begin(request)
			r.Drain()
			synctest.Wait()
			time.Sleep(hold)
			synctest.Wait()
			if err := r.Sync(t.Context()); err != nil {
				t.Errorf("after the end: %v", err)
			}
		}, 1, hold},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				journal := &countedJournal{Journal: memory.NewJournal()}
				r := boot(t, Config{Journal: journal, CommitHold: hold}, set)
				start, before := time.Now(), journal.commits.Load()
				c.ask(t, r)
				if took, commits := time.Since(start), journal.commits.Load()-before; took != c.took || commits != c.commits {
					t.Errorf("%d commits in %v, want %d in %v", commits, took, c.commits, c.took)
				}
				r.stop()
			})
		})
	}
}

// begin requests a run that is not durable yet.
func (r *rig) begin(request run.Request) run.ID {
	r.t.Helper()
	receipt, err := r.Begin(r.t.Context(), request)
	if err != nil || receipt.Run == "" {
		r.t.Fatalf("%+v, %v", receipt, err)
	}
	return receipt.Run
}

// A run that was begun and not committed is as if it had never been.
func TestBegunIsNotDurable(t *testing.T) {
	t.Parallel()
	set := load(t, heldHCL)
	synctest.Test(t, func(t *testing.T) {
		r := boot(t, Config{CommitHold: time.Hour}, set)
		id := r.begin(run.Request{Flow: "f", Trigger: run.Trigger{Kind: run.TriggerManual, Payload: []byte("1")}})
		synctest.Wait()
		r.crash()
		if err := r.Sync(t.Context()); !errors.Is(err, ErrStopped) {
			t.Errorf("Sync after a crash: %v", err)
		}
		again := boot(t, Config{Journal: r.journal}, set)
		if _, err := again.Get(t.Context(), id); err == nil {
			t.Error("the run is there")
		}
		again.stop()
	})
}
