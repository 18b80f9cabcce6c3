package dag

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// Func is what is done for a node. N is int for [Graph.Walk], which gives it the
// node, and [Node] for [Plan.Walk]. The context ends when the walk is stopped;
// the walk waits for the function even then.
type Func[N any] func(ctx context.Context, node N) error

// TimeoutError reports that a function took longer than [Timeout] let it. It is
// [context.DeadlineExceeded] for errors.Is.
type TimeoutError struct {
	After time.Duration
	Err   error // what the function has returned
}

func (e *TimeoutError) Error() string {
	return fmt.Sprintf("timed out after %v: %v", e.After, e.Err)
}

// Unwrap is Err.
func (e *TimeoutError) Unwrap() error { return e.Err }

// Is reports whether target is context.DeadlineExceeded.
func (e *TimeoutError) Is(target error) bool { return target == context.DeadlineExceeded }

// Timeout is do with a context that ends after the given time; 0 is no limit. An
// error that do returns once it has ended so becomes a *[TimeoutError]. Do must
// heed its context: it is waited for.
//
// For a timeout of each node's own, call it where the node is known:
// Timeout(n.Value.Timeout, do)(ctx, n).
func Timeout[N any](after time.Duration, do Func[N]) Func[N] {
	if after <= 0 {
		return do
	}
	return func(parent context.Context, node N) error {
		mark := errors.New("time is up") // not that of an outer Timeout
		ctx, cancel := context.WithTimeoutCause(parent, after, mark)
		defer cancel()
		err := do(ctx, node)
		if err != nil && context.Cause(ctx) == mark {
			return &TimeoutError{After: after, Err: err}
		}
		return err
	}
}

// Backoff defines how long to wait after the given attempt, counted from 1, has
// failed, and whether another may help at all.
type Backoff func(attempt int, err error) (wait time.Duration, again bool)

// Doubling waits for first, then twice as long each time, but never longer than
// most.
func Doubling(first, most time.Duration) Backoff {
	return func(attempt int, _ error) (time.Duration, bool) {
		wait := min(first, most)
		for ; attempt > 1 && 0 < wait && wait < most; attempt-- {
			if wait > most/2 {
				return most, true
			}
			wait *= 2
		}
		return wait, true
	}
}

// Retry calls do until it returns nil, at most the given number of times, and
// waits in between as backoff says; nil is not at all. It gives back do's last
// error. There is no other attempt after [ErrSkip], after a panic and once the context
// has ended, which also ends the waiting: the error is then that of the context as
// well.
func Retry[N any](attempts int, backoff Backoff, do Func[N]) Func[N] {
	if backoff == nil {
		backoff = func(int, error) (time.Duration, bool) { return 0, true }
	}
	return func(ctx context.Context, node N) error {
		for attempt := 1; ; attempt++ {
			err := do(ctx, node)
			if err == nil || errors.Is(err, ErrSkip) || attempt >= attempts {
				return err
			}
			wait, again := backoff(attempt, err)
			if !again {
				return err
			}
			if ended := sleep(ctx, wait); ended != nil {
				return fmt.Errorf("%w before attempt %d, after: %w", ended, attempt+1, err)
			}
		}
	}
}

// sleep fails with the context's cause when it ends first.
func sleep(ctx context.Context, d time.Duration) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if d <= 0 {
		return nil
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// hooked is do with calls before and after it.
func hooked(before func(int), after func(int, error), do Func[int]) Func[int] {
	if before == nil && after == nil {
		return do
	}
	return func(ctx context.Context, node int) error {
		if before != nil {
			before(node)
		}
		err := caught(ctx, node, do)
		if after != nil {
			after(node, err)
		}
		return err
	}
}

func caught(ctx context.Context, node int, do Func[int]) (err error) {
	defer func() {
		if value := recover(); value != nil {
			err = newPanicError(value)
		}
	}()
	return do(ctx, node)
}
