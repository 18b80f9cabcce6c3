package sdk

import (
	"errors"
	"fmt"
	"time"

	"github.com/flowhost/flowhost/sdk/abi"
	"github.com/flowhost/flowhost/sdk/internal/guest"
)

// Error is a failure with more than a message. [Fail], [Retry] and
// [Permanent] make the usual ones. The zero value is not retryable and has no
// code.
type Error struct {
	Code       string        // short and stable, for machines; "denied" makes the outcome denied
	Message    string        // for people; default: the text of Err
	Retryable  bool          // another attempt may succeed
	RetryAfter time.Duration // least delay before that attempt; 0 leaves it to the task's retry policy
	Details    any           // more for machines, encoded as JSON; nil for none
	Err        error         // the cause; nil for none
}

// Fail makes an error that another attempt would only repeat. The code is for
// machines: short and stable. Format and args are those of fmt.Errorf.
func Fail(code, format string, args ...any) error {
	return &Error{Code: code, Err: fmt.Errorf(format, args...)}
}

// Retry reports that another attempt may succeed, after at least the given delay;
// 0 leaves the delay to the task's retry policy. The code and the details of an
// [Error] in err are kept. It returns nil for nil.
func Retry(err error, after time.Duration) error {
	if err == nil {
		return nil
	}
	e := inherit(err)
	e.Retryable, e.RetryAfter = true, after
	return e
}

// Permanent reports that another attempt would fail in the same way. The code and
// the details of an [Error] in err are kept. It returns nil for nil.
func Permanent(err error) error {
	if err == nil {
		return nil
	}
	return inherit(err)
}

func inherit(err error) *Error {
	e := &Error{Err: err}
	var inner *Error
	if errors.As(err, &inner) {
		e.Code, e.Details = inner.Code, inner.Details
	}
	return e
}

// Error gives the message and the cause, without the code.
func (e *Error) Error() string {
	switch {
	case e.Err == nil:
		return e.Message
	case e.Message == "":
		return e.Err.Error()
	}
	return e.Message + ": " + e.Err.Error()
}

// Unwrap gives the cause.
func (e *Error) Unwrap() error { return e.Err }

// Failure is the error as the host gets it. Any error with this method is
// passed on so; the message is taken from the outermost error of the chain.
func (e *Error) Failure() abi.Failure {
	f := abi.Failure{
		Code:         e.Code,
		Message:      e.Error(),
		Retryable:    e.Retryable,
		RetryAfterMS: ceilMilliseconds(e.RetryAfter),
	}
	if e.Details == nil {
		return f
	}
	details, err := guest.Encode(e.Details)
	if err != nil {
		// The failure itself matters more than its details.
		details, _ = guest.Encode("the details cannot be encoded: " + err.Error())
	}
	f.Details = details
	return f
}

// ceilMilliseconds rounds up: the next attempt must not come too early.
func ceilMilliseconds(d time.Duration) int64 {
	if d <= 0 {
		return 0
	}
	return int64((d-1)/time.Millisecond) + 1
}
