package engine

import (
	"context"

	"github.com/flowhost/flowhost/run"
)

// PauseHost stops the start of attempts until ResumeHost, also across restarts. Attempts
// under way end, requests are accepted and schedules fire: their runs wait. It returns the
// pause once that is durable; of a host that is paused already, the first one, and began is
// false.
func (e *Engine) PauseHost(ctx context.Context, reason string) (pause run.Pause, began bool, err error) {
	err = e.durably(ctx, func() error {
		if e.exec.shard.Pause == nil {
			began = true
			if err := e.exec.commits.record(run.Event{At: e.exec.clock.now(), Data: &run.HostPaused{Reason: reason}}); err != nil {
				return err
			}
		}
		pause = *e.exec.shard.Pause
		return nil
	})
	return pause, began, err
}

// ResumeHost lets attempts start again. It returns the pause that has ended once that is
// durable, nil if the host was not paused.
func (e *Engine) ResumeHost(ctx context.Context) (ended *run.Pause, err error) {
	err = e.durably(ctx, func() error {
		if ended = e.exec.shard.Pause; ended == nil {
			return nil
		}
		return e.exec.commits.record(run.Event{At: e.exec.clock.now(), Data: &run.HostResumed{}})
	})
	return ended, err
}
