package engine

import (
	"context"
	"errors"
	"fmt"

	"github.com/flowhost/flowhost/run"
)

// Journal is the ordered log of commits that an engine writes. It has one
// writer at a time: an append with an outdated revision is refused.
type Journal interface {
	// Append adds a commit after the given revision, 0 for an empty journal, and
	// gives its revision once it is durable. It answers run.ErrFenced when the
	// journal's last revision is another one. An append whose answer was lost may
	// be repeated with the same arguments and gives the same revision.
	Append(ctx context.Context, after uint64, commit []byte) (revision uint64, err error)

	// Replay hands over all commits with a revision above the given one, in
	// order, and returns at the end of the log. The bytes belong to apply.
	Replay(ctx context.Context, after uint64, apply func(revision uint64, commit []byte) error) error

	// Limit is the size of the largest commit that Append takes, in bytes.
	Limit() int
}

// Invoker runs one attempt. It must end when ctx ends: with the outcome
// timed_out for the cause run.ErrDeadline, canceled for run.ErrCanceled, and
// with an error for any other cause, which makes the attempt lost.
type Invoker interface {
	Invoke(ctx context.Context, call run.Call) (run.Result, error)
}

// Observer is told of each event once it is durable, in the journal's order, on
// one goroutine. An observer that is slow slows the engine down; one that returns
// an error is logged and told of the next event.
type Observer interface {
	Committed(ctx context.Context, notice run.Notice) error
}

// Errors of the engine's methods.
var (
	ErrDraining   = errors.New("the host is stopping and takes no new runs")
	ErrStopped    = errors.New("the engine is not running")
	ErrFinished   = errors.New("the run has finished already")
	ErrUnknownRun = errors.New("no such run, or it finished too long ago to be still known here")
)

// BusyError answers a request while as many runs are open as the engine may
// hold. The publisher should try again later.
type BusyError struct {
	Limit int
}

func (e *BusyError) Error() string {
	return fmt.Sprintf("%d runs are open, which is the limit: try again later", e.Limit)
}
