package api

import (
	"time"
)

// Verbs of the micro service: the requests on [bus.APISubject]. VerbRun has the flow's
// name behind it, see [bus.RunSubject].
const (
	VerbRun      = "run"      // start a run
	VerbFlows    = "flows"    // the flows that can be asked for
	VerbDeployed = "deployed" // these, to be compared with files
	VerbList     = "list"     // runs, newest first
	VerbGet      = "get"      // a run's record
	VerbWatch    = "watch"    // a run's record when it has changed
	VerbLogs     = "logs"     // lines that a run's tasks wrote
	VerbFollow   = "follow"   // events after a cursor
	VerbCancel   = "cancel"   // stop a run, or a task of it
	VerbRetry    = "retry"    // a new run of one that was there before
	VerbSignal   = "signal"   // end a wait of a run with a payload
	VerbApprove  = "approve"  // decide a wait of a run for an approval

	VerbLimits      = "limits"      // the present state of limits
	VerbDeadLetters = "deadletters" // messages that could make no run

	VerbSendDeadLetter    = "send_deadletter"    // start the run that a dead letter could not
	VerbDiscardDeadLetter = "discard_deadletter" // remove one

	VerbSchedules      = "schedules"       // the present state of schedules
	VerbPause          = "pause"           // stop a schedule, or all of a flow
	VerbResume         = "resume"          // resume it
	VerbFire           = "fire"            // start a run of a schedule now
	VerbBackfill       = "backfill"        // start the runs of past nominal times of a schedule
	VerbBackfills      = "backfills"       // how far these have come
	VerbCancelBackfill = "cancel_backfill" // stop one

	VerbKVBuckets = "kv_buckets" // key-value buckets
	VerbKVList    = "kv_list"    // keys of one
	VerbKVGet     = "kv_get"     // the value of a key
	VerbKVPut     = "kv_put"     // write one
	VerbKVDelete  = "kv_delete"  // remove one

	VerbArtifact = "artifact" // a part of an artifact that a run names

	VerbHost       = "host"        // the state of the host as a whole
	VerbPauseHost  = "pause_host"  // start no attempt until it is resumed
	VerbResumeHost = "resume_host" // resume it
	VerbDrain      = "drain"       // shut it down gracefully
)

// MaxWait bounds the header Fh-Wait.
const MaxWait = 24 * time.Hour
