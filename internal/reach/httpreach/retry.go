package httpreach

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/flowhost/flowhost/internal/reach/gate"
	"github.com/flowhost/flowhost/run/access"
)

const (
	retryDelay    = 200 * time.Millisecond
	maxRetryDelay = 10 * time.Second // a longer one is left to the engine, which waits without a running task
)

// repeatable are the statuses that a later try may not get.
var repeatable = []int{
	http.StatusRequestTimeout, http.StatusTooEarly, http.StatusTooManyRequests,
	http.StatusInternalServerError, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout,
}

// withRetries tries as often as the connection says.
func (x *exchange) withRetries(ctx context.Context, g *gate.Gate) (*result, error) {
	attempts, delay := 1, retryDelay
	if x.connection != nil && x.connection.HTTP.Retry != nil && x.isIdempotent() {
		attempts = x.connection.HTTP.Retry.Attempts
		if x.connection.HTTP.Retry.Delay > 0 {
			delay = x.connection.HTTP.Retry.Delay
		}
	}
	for n := 1; ; n++ {
		if fault := g.Start(ctx, x.caller.Flow); fault != nil {
			return nil, fault
		}
		r, err := x.once(ctx)
		if err != nil {
			err = networkFault(ctx, describe(x.head.Method, x.target), err)
		}
		if n >= attempts || !mayPass(r, err) || ctx.Err() != nil {
			return r, err
		}
		wait, late := x.pause(r, min(delay, maxRetryDelay))
		if late != nil {
			return nil, late
		}
		delay = min(2*delay, maxRetryDelay)
		if deadline, ok := ctx.Deadline(); ok && x.client.now().Add(wait).After(deadline) {
			return r, err
		}
		if err := x.client.sleep(ctx, wait); err != nil {
			return nil, err
		}
	}
}

// isIdempotent reports whether the server may get the request twice (RFC 9110, section 9.2.2).
func (x *exchange) isIdempotent() bool {
	return slices.Contains([]string{"GET", "HEAD", "OPTIONS", "PUT", "DELETE"}, x.head.Method) || x.headers.Get("Idempotency-Key") != ""
}

func mayPass(r *result, err error) bool {
	if err == nil {
		return slices.Contains(repeatable, r.status)
	}
	var fault *access.Fault
	return errors.As(err, &fault) && fault.Retryable && (fault.Code == access.CodeUnreachable || fault.Code == access.CodeTimeout)
}

// pause is the time before the next try, or the fault of a server that wants more of it.
func (x *exchange) pause(r *result, delay time.Duration) (time.Duration, error) {
	if r == nil {
		return delay, nil
	}
	wanted := retryAfter(r.header, x.client.now())
	if wanted <= maxRetryDelay {
		return max(delay, wanted), nil
	}
	target := describe(x.head.Method, x.target)
	return 0, &access.Fault{
		Code:         access.CodeRefused,
		Message:      target + " failed: the server answered " + strconv.Itoa(r.status) + " and wants the next try after " + wanted.Round(time.Second).String(),
		Target:       target,
		Detail:       strconv.Itoa(r.status),
		Retryable:    true,
		RetryAfterMS: wanted.Milliseconds(),
	}
}

// maxRetryAfter bounds what a server may ask for.
const maxRetryAfter = 24 * time.Hour

// retryAfter reads seconds or a date, 0 for what is neither.
func retryAfter(headers http.Header, now time.Time) time.Duration {
	text := headers.Get("Retry-After")
	if seconds, err := strconv.ParseUint(text, 10, 32); err == nil {
		return min(time.Duration(seconds)*time.Second, maxRetryAfter)
	}
	if date, err := http.ParseTime(text); err == nil {
		return min(max(date.Sub(now), 0), maxRetryAfter)
	}
	return 0
}
