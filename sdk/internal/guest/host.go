package guest

import (
	"context"
	"errors"
	"time"

	"github.com/flowhost/flowhost/sdk/abi"
)

// Host is what a guest can ask of the one who runs it: flowhost:task/v1 in Go's
// terms. An implementation serves one call at a time.
type Host interface {
	// Read gives a field of the call. The caller owns the bytes.
	Read(abi.Field) ([]byte, error)

	// Output sets the call's output, JSON; the last one wins. It returns
	// ErrOutputSize when the output is over its limit.
	Output(json []byte) error

	// Fail sets the call's failure, the JSON of an [abi.Failure].
	Fail(json []byte)

	// Log writes one line. Fields are a JSON object or empty; the host must not
	// keep them.
	Log(level abi.Level, message string, fields []byte)

	// TimeLeft is the time until the call's deadline, at least 0; false without
	// a deadline.
	TimeLeft() (time.Duration, bool)

	// Canceled reports whether the call is being canceled, and the time until it
	// is ended.
	Canceled() (left time.Duration, canceled bool)

	// Operate performs an operation, with its head as a JSON object. It fails with an
	// *abi.Fault, or with the cause with which ctx ended. It is safe for concurrent use.
	Operate(ctx context.Context, kind string, head, body []byte) (Reply, error)

	// Alone does so when no other goroutine could run meanwhile. Unless the function winds
	// down already, it fails with context.Canceled when the call is canceled.
	Alone(kind string, head, body []byte, windsDown bool) (Reply, error)

	// Begin starts an operation and does not wait for it. The host has copied head and body
	// when it returns.
	Begin(kind string, head, body []byte) (Pending, error)

	// Wait returns true when it is time to look again whether the call continues,
	// and false when stop was closed before.
	Wait(stop <-chan struct{}) bool
}

// Pending is an operation that was started.
type Pending interface {
	// Wait waits for the end of the operation. It fails as [Host].Alone does, and can be
	// called again after context.Canceled. The body of the answer is in the array of into, if
	// that is large enough.
	Wait(into []byte, windsDown bool) (Reply, error)

	// Close gives the operation back, and cancels it if it has not ended.
	Close()
}

// done is the answer to an operation that has ended already.
type done Reply

func (d done) Wait([]byte, bool) (Reply, error) { return Reply(d), nil }
func (done) Close()                             {}

// ErrOutputSize is the answer to an output that is over its limit.
var ErrOutputSize = errors.New("the output is over its limit")
