package httpreach

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/url"
	"strings"

	"github.com/flowhost/flowhost/internal/httprule"
	"github.com/flowhost/flowhost/internal/reach/netreason"
	"github.com/flowhost/flowhost/run/access"
)

// maxMessage bounds the text of a network error in a fault.
const maxMessage = 500

// asFault is the fault that an error is, or wraps.
func asFault(err error) *access.Fault {
	var fault *access.Fault
	if !errors.As(err, &fault) {
		fault = &access.Fault{Code: access.CodeInternal, Message: "the request failed within the host"}
	}
	return fault
}

func faultAnswer(fault *access.Fault) access.Answer {
	head, err := json.Marshal(fault)
	if err != nil {
		panic(err) // strings, a number and a flag
	}
	return access.Answer{Head: head, Fault: fault}
}

func invalid(format string, args ...any) *access.Fault {
	return &access.Fault{Code: access.CodeInvalid, Message: fmt.Sprintf(format, args...)}
}

// refusedTarget is a URL without a canonical form: no rule can match it.
func refusedTarget(method string, err error) *access.Fault {
	return &access.Fault{Code: access.CodeDenied, Message: method + " refused: " + err.Error(), Rule: "canonical form of targets"}
}

// describe is a target as faults show it: without the query, which may hold anything.
func describe(method string, t *httprule.Target) string {
	return method + " " + t.Origin() + t.Path
}

// networkFault is what an error of net/http means. The operation's context is not that of the
// try, whose time may be shorter.
func networkFault(operation context.Context, target string, err error) *access.Fault {
	var fault *access.Fault
	if errors.As(err, &fault) {
		return fault
	}
	if errors.As(errOf(operation), &fault) {
		fault.Target = target
		return fault
	}
	// The text of a *url.Error has the query, and so a credential.
	if u, ok := errors.AsType[*url.Error](err); ok {
		err = u.Err
	}
	text := err.Error()
	fault = &access.Fault{Code: access.CodeUnreachable, Target: target, Retryable: true}
	switch {
	case isTimeout(err):
		fault.Code, fault.Message = access.CodeTimeout, target+" failed: the server did not answer in time"
	case strings.Contains(text, "response headers exceeded"), strings.Contains(text, "header list larger"):
		// net/http has no type for them.
		return tooLarge(target, fmt.Sprintf("the headers of the response have more than %d bytes", maxHeaderBytes))
	default:
		if len(text) > maxMessage {
			text = text[:maxMessage] + "…"
		}
		inside := *fault
		inside.Message = target + " failed: " + strings.ToValidUTF8(text, "?")
		fault.Message, fault.Inside = target+" failed: "+netreason.Of(err), &inside
	}
	return fault
}

func isTimeout(err error) bool {
	timeout, ok := errors.AsType[net.Error](err)
	return ok && timeout.Timeout()
}

func tooLarge(target, what string) *access.Fault {
	return &access.Fault{Code: access.CodeTooLarge, Message: target + " failed: " + what, Target: target}
}
