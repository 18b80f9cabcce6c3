package ops

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/flowhost/flowhost/bus/internal/jskit"
	"github.com/flowhost/flowhost/run/access"
)

// Rules of faults with access.CodeDenied.
const (
	RuleGrant = "not granted"
	RuleAllow = "not allowed by the operator"
)

// Invalid is the fault of an operation that is wrong in itself.
func Invalid(format string, args ...any) *access.Fault {
	return &access.Fault{Code: access.CodeInvalid, Message: fmt.Sprintf(format, args...)}
}

// TooLarge is the fault of an operation that reaches a bound.
func TooLarge(format string, args ...any) *access.Fault {
	return &access.Fault{Code: access.CodeTooLarge, Message: fmt.Sprintf(format, args...)}
}

// NotGranted is the fault of an operation for which the flow has no grant. The line to add
// goes into the grant.
func NotGranted(target, add string) *access.Fault {
	return &access.Fault{
		Code: access.CodeDenied, Target: target, Rule: RuleGrant, Add: add,
		Message: fmt.Sprintf("%s is not granted: add %s to the grant", target, add),
	}
}

// NotAllowed is the fault of an operation that the operator's block does not include.
func NotAllowed(target, add string, allow *access.Allow) *access.Fault {
	place := ""
	if allow.From != "" {
		place = " (" + allow.From + ")"
	}
	return &access.Fault{
		Code: access.CodeDenied, Target: target, Rule: RuleAllow, Add: add,
		Message: fmt.Sprintf("%s is granted and not allowed by the operator: add %s to allow %q%s", target, add, allow.Pattern, place),
	}
}

// Ended is the fault of an operation whose attempt has ended, nil while it lasts.
func Ended(ctx context.Context, what string) *access.Fault {
	switch err := ctx.Err(); {
	case err == nil:
		return nil
	case errors.Is(err, context.DeadlineExceeded):
		return &access.Fault{Code: access.CodeTimeout, Retryable: true,
			Message: what + " failed: no time is left for the attempt, raise its timeout"}
	}
	return &access.Fault{Code: access.CodeCanceled, Message: what + " failed: the attempt has ended"}
}

// Wire is the fault that an error of NATS becomes. ctx is the operation's, without the
// bound of one request: whoever has no time left is not at fault for a silent server. The
// texts of NATS name streams and subjects that are no concern of guests, so none of them is
// passed on.
func Wire(ctx context.Context, what string, err error) *access.Fault {
	if f := Ended(ctx, what); f != nil {
		return f
	}
	if jskit.Unstorable(err) {
		return TooLarge("%s failed: the message is larger than the NATS server or the stream takes: make it smaller, or raise max_payload there", what)
	}
	if jskit.IsFull(err) {
		return TooLarge("%s failed: the storage is full: delete what is not needed, or raise its size", what)
	}
	var api *jetstream.APIError
	if errors.As(err, &api) {
		f := &access.Fault{
			Code: access.CodeRefused, Detail: "NATS " + strconv.Itoa(int(api.ErrorCode)), Retryable: !jskit.Permanent(err),
			Message: fmt.Sprintf("%s failed: the NATS server refuses it with error code %d", what, api.ErrorCode),
		}
		if f.Retryable {
			f.Code = access.CodeUnreachable
		}
		return f
	}
	return &access.Fault{Code: access.CodeUnreachable, Retryable: true,
		Message: what + " failed: the NATS server does not answer, it may or may not have been performed"}
}
