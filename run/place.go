package run

import "context"

// WaitReason is what keeps a call, a task run or a run from going on.
type WaitReason string

// What a call may wait for although its attempt has begun. Its timeout counts the time in which it sleeps, but none of
// the others.
const (
	WaitWorker WaitReason = "worker" // a place to compute in, which others have at present
	WaitMemory WaitReason = "memory" // free memory of the host
	WaitModule WaitReason = "module" // the preparation of its module
	WaitSleep  WaitReason = "sleep"  // the end of a sleep of its own

	WaitOperation WaitReason = "operation" // the answer to a request that it sent: HTTP, SQL, a message
)

// Timed reports whether the timeout of a call counts the time of such a wait.
func (w WaitReason) Timed() bool { return w == WaitSleep || w == WaitOperation }

// Place is the computing place that an engine has given to a call. A host that lets the
// call wait gives it back meanwhile. Its methods are called one at a time.
type Place interface {
	// Leave lets other calls compute while this one waits.
	Leave(WaitReason)

	// Return waits for a place, in which the call computes again. It fails with the cause
	// with which ctx ended.
	Return(ctx context.Context) error
}

// PlaceKey is the key of the [Place] in the context with which a host gets a call.
type PlaceKey struct{}

// PlaceOf is the place of a call. A call without one is bounded by nothing.
func PlaceOf(ctx context.Context) Place {
	if p, ok := ctx.Value(PlaceKey{}).(Place); ok {
		return p
	}
	return unbounded{}
}

type unbounded struct{}

func (unbounded) Leave(WaitReason)             {}
func (unbounded) Return(context.Context) error { return nil }
