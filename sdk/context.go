package sdk

import (
	"context"
	"log/slog"

	"github.com/flowhost/flowhost/sdk/abi"
)

// Identity tells a function which call it is: flow, run, task, attempt. Its
// IdempotencyKey is the same for all attempts of a task run.
type Identity = abi.Identity

// Context is one call of a function. It ends with the call.
//
// As a context.Context it has the attempt's deadline and is canceled with the
// run, but only as far as somebody looks: Err and each new call of Done ask the
// host. A channel that Done returned earlier is closed by the next such look,
// so a select that waits on it needs another case that ends.
type Context interface {
	context.Context

	// Call says which call this is.
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
