package run

import (
	"math"
	"time"
)

// Backoff names how the delay between attempts grows.
type Backoff string

// Kinds of backoff.
const (
	Exponential Backoff = "exponential" // the delay doubles with each attempt
	Constant    Backoff = "constant"
)

// RetryPolicy defines how often and when a failed task is attempted again. The
// zero value is one attempt.
type RetryPolicy struct {
	Attempts int           // in all, the first included; 0 is 1
	Backoff  Backoff       // default Exponential
	Delay    time.Duration // before the second attempt; default 1s
	Max      time.Duration // cap on the delay; default 5m
	Jitter   float64       // share of the delay that is random, 0 to 1
}

// Defaults of a policy's delay and its cap.
const (
	DefaultRetryDelay = time.Second
	DefaultRetryMax   = 5 * time.Minute
)

// MaxLost is how many attempts of one task run may be lost before it fails.
// Lost attempts do not use up the policy's attempts, but a module that takes
// its host down each time must not do so forever.
const MaxLost = 5

// Allows reports whether another attempt may follow one that ended with f, when
// spent attempts were made and lost of these were lost.
func (p RetryPolicy) Allows(f *Failure, spent, lost int) bool {
	return p.Left(f, spent, lost) && (f.Retryable || f.Outcome == OutcomeLost)
}

// Left is Allows without the failure's own classification: it reports whether
// there is another attempt at all, for whoever else decides about it.
func (p RetryPolicy) Left(f *Failure, spent, lost int) bool {
	switch f.Outcome {
	case OutcomeLost:
		return lost < MaxLost
	case OutcomeDenied, OutcomeCanceled:
		return false
	}
	return spent-lost < p.Attempts
}

// After is the delay after the given number of attempts that were not lost. u
// is a random number in [0, 1): the jitter subtracts at most its share from the delay,
// so that the cap holds.
func (p RetryPolicy) After(spent int, u float64) time.Duration {
	delay, limit := p.Delay, p.Max
	if delay <= 0 {
		delay = DefaultRetryDelay
	}
	if limit <= 0 {
		limit = DefaultRetryMax
	}
	grown := float64(delay)
	if p.Backoff != Constant {
		grown *= math.Pow(2, float64(max(spent-1, 0)))
	}
	grown = min(grown, float64(limit))
	return time.Duration(grown * (1 - p.Jitter*u))
}
