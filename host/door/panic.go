package door

import (
	"context"
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/flowhost/flowhost/run/access"
)

// Panic is a panic of a driver. It contains no values of the driver's, which may be secret.
type Panic struct {
	Reason string // the text of a run-time error, otherwise the type of what was panicked with
	Stack  string
}

// do performs an operation. A driver that panics is at fault for this one only.
func (d *Door) do(ctx context.Context, op *access.Operation) (answer access.Answer) {
	kind := op.Kind // the driver may change the operation
	defer func() {
		value := recover()
		if value == nil {
			return
		}
		d.recovered(kind, value)
		answer = access.Answer{Fault: &access.Fault{Code: access.CodeInternal, Retryable: true,
			Message: kind + " failed: the host has a defect there, its log has the details; the operation may or may not have been performed"}}
	}()
	return d.session.Do(ctx, op)
}

// recover is deferred around what the session does.
func (d *Door) recover(what string) {
	if value := recover(); value != nil {
		d.recovered(what, value)
	}
}

// recovered reports a panic. It is called while its stack is there.
func (d *Door) recovered(what string, value any) {
	if d.config.Panicked == nil {
		return
	}
	p := Panic{Reason: fmt.Sprintf("%T", value), Stack: string(debug.Stack())}
	if err, ok := value.(runtime.Error); ok {
		p.Reason = err.Error()
	}
	d.config.Panicked(what, p)
}
