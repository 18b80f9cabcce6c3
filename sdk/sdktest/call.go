package sdktest

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/flowhost/flowhost/run"
	"github.com/flowhost/flowhost/sdk"
	"github.com/flowhost/flowhost/sdk/abi"
	"github.com/flowhost/flowhost/sdk/internal/guest"
)

// DefaultOutputLimit is a host's default limit on an output, in bytes.
const DefaultOutputLimit = 1 << 20

// DefaultGrace is the time that a host gives a canceled call by default to end itself.
const DefaultGrace = 2 * time.Second

// Options describes the call. The zero value is a first attempt without config.
type Options struct {
	// Config is the task's config, encoded as JSON. Default: none.
	Config any

	// Identity identifies the call for the function. Each field that is
	// zero has a default: flow "test", task "test", a fixed run id, attempt 1,
	// the idempotency key of these, scheduled at the beginning of 2026 in UTC.
	Identity sdk.Identity

	// OutputLimit bounds the output, in bytes. Default: DefaultOutputLimit.
	OutputLimit int

	// Grace is the time that the function has left when it first learns that the
	// call is canceled. Nothing ends one that takes longer. Default: DefaultGrace.
	Grace time.Duration

	// Outside is what the function reaches. Default: nothing.
	Outside *Outside
}

// Result is how a call ended, as a host reports it, with the function's typed
// output beside its JSON.
type Result[Out any] struct {
	run.Result
	Value Out // what the function returned; the zero value unless the call succeeded
}

// Call runs one call of fn. The function need not be registered.
func Call[In, Out any](ctx context.Context, fn func(sdk.Context, In) (Out, error), in In, o Options) Result[Out] {
	var value Out
	handler := guest.Typed(func(c *guest.Call, in In) (Out, error) {
		out, err := fn(sdk.ContextOf(c), in)
		value = out
		return out, err
	})
	result := Result[Out]{Result: serve(ctx, handler, in, o)}
	if result.Outcome == run.OutcomeSucceeded {
		result.Value = value
	}
	return result
}

// Invoke runs one call of a registered function by its name, with the input as
// a flow would give it. An empty name calls the plugin's only
// function, or its main one.
func Invoke(ctx context.Context, name string, input json.RawMessage, o Options) run.Result {
	handler, err := guest.Registered.Lookup(name)
	if err != nil {
		return rejected(run.CodeFunction, err)
	}
	return serve(ctx, handler, input, o)
}

// Manifest is the manifest of the plugin under test.
func Manifest() abi.Manifest { return guest.Registered.Manifest() }

func serve(ctx context.Context, fn guest.Handler, input any, o Options) run.Result {
	h, err := newHost(ctx, input, o)
	if err != nil {
		return rejected(run.CodeExpression, err)
	}
	start := time.Now()
	guest.Serve(h, fn)
	o.Outside.rollBack()
	result := h.result()
	result.Duration = time.Since(start)
	return result
}

// rejected is the result of a call that did not reach the function.
func rejected(code string, err error) run.Result {
	return run.Result{Outcome: run.OutcomeRejected, Failure: &run.Failure{
		Outcome: run.OutcomeRejected, Code: code, Message: err.Error(),
	}}
}

func newHost(ctx context.Context, input any, o Options) (*host, error) {
	fields := map[abi.Field][]byte{}
	for field, value := range map[abi.Field]any{
		abi.FieldInput:    input,
		abi.FieldConfig:   o.Config,
		abi.FieldIdentity: identityOrDefault(o.Identity),
	} {
		data, err := guest.Encode(value)
		if err != nil {
			return nil, fmt.Errorf("the test's %T cannot be encoded: %w", value, err)
		}
		fields[field] = data
	}
	return &host{
		ctx: ctx, fields: fields,
		limit: cmp.Or(o.OutputLimit, DefaultOutputLimit), grace: cmp.Or(o.Grace, DefaultGrace), outside: o.Outside,
	}, nil
}

func identityOrDefault(id sdk.Identity) sdk.Identity {
	id.Flow = cmp.Or(id.Flow, "test")
	id.Run = cmp.Or(id.Run, "01KDVDNC00TESTTESTTESTTEST")
	id.Task = cmp.Or(id.Task, "test")
	id.Attempt = cmp.Or(id.Attempt, 1)
	if id.IdempotencyKey == "" {
		call := run.Call{Run: run.ID(id.Run), Task: id.Task, Key: id.Key}
		id.IdempotencyKey = call.IdempotencyKey()
	}
	if id.Scheduled.IsZero() {
		id.Scheduled = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	}
	return id
}
