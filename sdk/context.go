package sdk

import (
	"context"
	"log/slog"
	"time"

	"github.com/flowhost/flowhost/sdk/abi"
)

// Identity identifies a call: flow, run, task, attempt. Its
// IdempotencyKey is the same for all attempts of a task run.
type Identity = abi.Identity

// Context is one call of a function. It ends with the call.
//
// As a context.Context it has the attempt's deadline and is canceled with the
// run or the task. A guest has one thread, so the end is noticed where somebody
// looks: Err, Canceled and each call of Done ask the host. Once Done was called, as
// a context that is derived from this one does, a goroutine looks too, whenever
// the function waits: for a channel, for a timer, for time to pass. A function
// that computes must look by itself, at this context and not at a derived one.
type Context interface {
	context.Context

	// Canceled reports whether the call is being canceled, and then how long the
	// function may take, in real time, to come to its end: to undo, to tidy up, to
	// report how far it got. After that it is ended wherever it is. Its output does
	// not count any more; the message and the details of an error that it returns
	// do. Sleeping takes no time any more.
	Canceled() (left time.Duration, canceled bool)

	// Call identifies the call.
	Call() Identity

	// Config decodes the config of the task and its plugin into v, a pointer. A
	// task without config leaves v as it is, so defaults can be set before. An
	// error names the field that does not fit; returned by the function, it
	// fails the call with the code "config", not retryable.
	Config(v any) error

	// Log writes into the log of the attempt. Attributes and groups become the
	// fields of the line. Every level is passed on; what is kept is the host's
	// decision.
	Log() *slog.Logger
}
