package secrets

import (
	"context"
	"errors"
	"fmt"

	"github.com/flowhost/flowhost/run/access"
)

// failure is why a source gives no value.
type failure struct {
	text      string // for whoever uses the secret
	cause     string // for the operator: paths, addresses, errors
	detail    string // of a server's answer
	retryable bool   // the source may recover without a change of the flow
	denied    bool   // the operator does not allow it
}

// fault is the failure for the secret of that name.
func (f *failure) fault(name string) *access.Fault {
	fault := &access.Fault{
		Code:      access.CodeUnreachable,
		Message:   fmt.Sprintf("secret %q cannot be read: %s", name, f.text),
		Target:    name,
		Detail:    f.detail,
		Retryable: f.retryable,
	}
	if f.denied {
		fault.Code, fault.Rule = access.CodeDenied, access.RuleOperator
	}
	if f.cause != "" {
		inside := *fault
		inside.Message += " (" + f.cause + ")"
		fault.Inside = &inside
	}
	return fault
}

// ended is the fault of a caller whose context has ended.
func ended(ctx context.Context, name string) *access.Fault {
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return &access.Fault{Code: access.CodeTimeout, Target: name, Retryable: true,
			Message: fmt.Sprintf("secret %q was not read in time", name)}
	}
	return &access.Fault{Code: access.CodeCanceled, Target: name,
		Message: fmt.Sprintf("secret %q was not read: the attempt has ended", name)}
}

// stopped is the fault of a Store that is closed.
func stopped(name string) *access.Fault {
	return &access.Fault{Code: access.CodeCanceled, Target: name, Retryable: true,
		Message: fmt.Sprintf("secret %q was not read: the host is shutting down", name)}
}
