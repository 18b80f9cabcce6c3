package cli

import (
	"context"
	"os"
	"os/signal"
	"sync"
	"syscall"
)

// ListenSignals turns SIGINT and SIGTERM into the ends of two contexts, with
// ErrInterrupted as the cause: soft ends at the first signal and requests a graceful
// stop, hard ends at the second and stops everything. The returned function stops the
// listening and waits for its end.
func ListenSignals(ctx context.Context) (soft, hard context.Context, stop func()) {
	hard, cutOff := context.WithCancelCause(ctx)
	soft, ask := context.WithCancelCause(hard)
	arrived := make(chan os.Signal, 2)
	signal.Notify(arrived, os.Interrupt, syscall.SIGTERM)
	var listening sync.WaitGroup
	listening.Go(func() {
		for _, end := range []context.CancelCauseFunc{ask, cutOff} {
			select {
			case <-arrived:
				end(ErrInterrupted)
			case <-hard.Done():
				return
			}
		}
	})
	return soft, hard, func() {
		signal.Stop(arrived)
		cutOff(nil)
		listening.Wait()
	}
}
