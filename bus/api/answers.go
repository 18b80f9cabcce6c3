package api

import (
	"github.com/flowhost/flowhost/run"
)

// Codes of error answers, beside those of run.RequestError.
const (
	CodeTimeout     = "timeout"      // the wait ended before the run, which continues
	CodeBusy        = "busy"         // too many requests wait: try again later
	CodeUnavailable = "unavailable"  // the host takes nothing now: try again later
	CodeHeader      = "header"       // a header of the request is wrong
	CodeTooLarge    = "too_large"    // the answer does not fit into a message
	CodeUnknownRun  = "unknown_run"  // no such run, or it is older than the history that is kept
	CodeUnknownTask = "unknown_task" // the run has no such task
	CodeFinished    = "finished"     // the run, or its task or wait, has finished already
	CodeUnfinished  = "unfinished"   // the run has not finished yet
	CodeUnknownWait = "unknown_wait" // the run has no such wait
	CodeNotWaiting  = "not_waiting"  // the wait has not started yet
	CodeWaitKind    = "wait_kind"    // the wait ends another way
	CodeSucceeded   = "succeeded"    // the run succeeded, and there is nothing to be continued

	CodeUnknownSchedule = "unknown_schedule" // no flow has such a schedule
	CodeUnknownBackfill = "unknown_backfill" // no such backfill, or it ended long ago
	CodeDisabled        = "disabled"         // the flow has switched the schedule off
	CodePaused          = "paused"           // the schedule is paused already
	CodeNotPaused       = "not_paused"       // the schedule is not paused
	CodeOverlap         = "overlap"          // an earlier run of the schedule is still going, and its policy lets no other start
	CodeNoTimes         = "no_times"         // the schedule has decided no times in the range
	CodeTooManyTimes    = "too_many_times"   // more than a backfill may have

	CodeUnknownDeadLetter = "unknown_deadletter" // no such dead letter, or not any more
	CodeNotSendable       = "not_sendable"       // what is left of the dead letter can start no run
	CodeDenied            = "denied"             // the request is for the operator

	CodeUnknownKey      = "unknown_key"      // the bucket has no such key
	CodeConflict        = "conflict"         // the key has another revision
	CodeFull            = "full"             // the value is too large, or there is no room for it
	CodeUnknownArtifact = "unknown_artifact" // no task of the run names it, or it is not kept any more
)

// ReasonLimit is the reason of an answer when the flow's concurrency rejects a request.
const ReasonLimit = "limit"

// ReceiptAnswer is the answer to a request that starts or changes a run.
type ReceiptAnswer struct {
	Run      *run.ID `json:"run"`
	Accepted *bool   `json:"accepted,omitempty"`
	Reason   string  `json:"reason,omitempty"`   // reasonLimit
	Repeated bool    `json:"repeated,omitempty"` // the request's key was known
}

// ErrorAnswer is the answer to a request that failed.
type ErrorAnswer struct {
	Run   run.ID `json:"run,omitempty"` // of a run that was accepted nevertheless
	Error struct {
		Code    string `json:"code"`
		Message string `json:"message"`
	} `json:"error"`
}

// receipt gives the receipt that the body was made of.
func (b *ReceiptAnswer) receipt() run.Receipt {
	r := run.Receipt{Repeated: b.Repeated, Limited: b.Reason == ReasonLimit}
	if b.Run != nil {
		r.Run, r.Accepted = *b.Run, *b.Run != ""
	}
	return r
}
