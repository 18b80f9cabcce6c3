package engine

import (
	"context"
	"errors"
	"fmt"

	"github.com/flowhost/flowhost/run"
)

// Journal is the ordered log of commits that an engine writes. It has one writer at a
// time: it refuses an append with an outdated revision.
type Journal interface {
	// Append adds a commit after the given revision, 0 for an empty journal, and
	// returns its revision once it is durable. It returns run.ErrFenced if the journal's
	// last revision is another one. An append whose answer was lost may be repeated with
	// the same arguments and returns the same revision.
	Append(ctx context.Context, after uint64, commit []byte) (revision uint64, err error)

	// Replay calls apply for all commits with a revision above the given one, in order,
	// and returns at the end of the log. The bytes belong to apply.
	Replay(ctx context.Context, after uint64, apply func(revision uint64, commit []byte) error) error

	// Compact removes commits up to and including the given revision, but never
	// the last one. From then on Replay begins after them.
	Compact(ctx context.Context, upTo uint64) error

	// Limit is the size of the largest commit that Append takes, in bytes.
	Limit() int
}

// Store keeps named bytes: snapshots and blobs. It is safe for concurrent use.
type Store interface {
	// Put returns once the bytes are durable. They replace those of the same name.
	Put(ctx context.Context, name string, data []byte) error

	// Get returns an error that wraps fs.ErrNotExist for an unknown name, and another
	// error for damaged bytes.
	Get(ctx context.Context, name string) ([]byte, error)

	// Delete of an unknown name is no error.
	Delete(ctx context.Context, name string) error

	// List returns all names, sorted.
	List(ctx context.Context) ([]string, error)
}

// History has the records of finished runs.
type History interface {
	// Get returns an error that wraps run.ErrUnknown for an unknown run.
	Get(ctx context.Context, id run.ID) (*run.Record, error)

	List(ctx context.Context, query run.Query) (run.Page, error)
}

// Invoker runs one attempt. It must end when ctx ends: with the outcome
// timed_out for the cause run.ErrDeadline, canceled for run.ErrCanceled, and
// with an error for any other cause, which makes the attempt lost.
type Invoker interface {
	Invoke(ctx context.Context, call run.Call) (run.Result, error)
}

// Observer receives each event once it is durable, in the journal's order, on one
// goroutine. A slow observer slows the engine down. The engine logs an observer's
// error and sends it the next event.
type Observer interface {
	Committed(ctx context.Context, notice run.Notice) error

	// Flush returns once everything that the observer has received is stored safely: the
	// journal may remove it then.
	Flush(ctx context.Context) error
}

// Errors of the engine's methods.
var (
	ErrDraining    = errors.New("the host is stopping and accepts no new runs")
	ErrStopped     = errors.New("the engine is not running")
	ErrFinished    = errors.New("the run has finished already")
	ErrUnfinished  = errors.New("the run has not finished yet: wait for its end, or cancel it")
	ErrSucceeded   = errors.New("the run succeeded, nothing to retry: use rerun, or retry one task")
	ErrUnknownTask = errors.New("the run's flow has no such task")
)

// BusyError is returned while as many runs are open as the engine may hold. The
// publisher should try again later.
type BusyError struct {
	Limit int
}

func (e *BusyError) Error() string {
	return fmt.Sprintf("%d runs are open, which is the limit: try again later", e.Limit)
}
