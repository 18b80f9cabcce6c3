package cli

import (
	"context"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"
)

// forwardTime is how long a signal counts as the same one when it arrives again. A shell,
// timeout or a supervisor sends it to the process and to its group, within milliseconds,
// and later on a busy machine. A person who has seen the effect of the first signal and
// sends another one takes longer.
const forwardTime = 250 * time.Millisecond

// ListenSignals turns SIGINT and SIGTERM into the ends of two contexts, with
// ErrInterrupted as the cause: soft ends at the first signal and requests a graceful
// stop, hard ends at the second and stops everything. The returned function stops the
// listening and waits for its end.
func ListenSignals(ctx context.Context) (soft, hard context.Context, stop func()) {
	arrived := make(chan os.Signal, 2)
	signal.Notify(arrived, os.Interrupt, syscall.SIGTERM)
	soft, hard, end := followSignals(ctx, arrived)
	return soft, hard, func() {
		signal.Stop(arrived)
		end()
	}
}

func followSignals(ctx context.Context, arrived <-chan os.Signal) (soft, hard context.Context, stop func()) {
	hard, cutOff := context.WithCancelCause(ctx)
	soft, ask := context.WithCancelCause(hard)
	var listening sync.WaitGroup
	listening.Go(func() {
		var first os.Signal
		var at time.Time
		for {
			select {
			case s := <-arrived:
				switch {
				case first == nil:
					first, at = s, time.Now()
					ask(ErrInterrupted)
				case s != first || time.Since(at) >= forwardTime:
					cutOff(ErrInterrupted)
					return
				}
			case <-hard.Done():
				return
			}
		}
	})
	return soft, hard, func() {
		cutOff(nil)
		listening.Wait()
	}
}
