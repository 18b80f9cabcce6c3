package run

import (
	"encoding/json"
	"time"
)

// Failure reports why an attempt, a task run or a run did not succeed. It is the
// "error" object of every JSON output.
type Failure struct {
	Outcome   Outcome `json:"outcome"`
	Code      string  `json:"code"` // short, stable, for machines; the guest's own or one of the Code constants
	Message   string  `json:"message"`
	Retryable bool    `json:"retryable"`

	// RetryAfter is the least delay before the next attempt that the guest
	// asked for; 0 leaves it to the policy.
	RetryAfter time.Duration   `json:"retry_after_ns,omitempty"`
	Details    json.RawMessage `json:"details,omitempty"`

	Task string `json:"task,omitempty"` // in a run's failure: the task that failed first
	Key  string `json:"key,omitempty"`  // and the item, of a fan-out
	At   string `json:"at,omitempty"`   // the task's place in its flow file, "orders.hcl:14"
}

// Error gives the message, after the code where there is one.
func (f *Failure) Error() string {
	if f.Code == "" {
		return f.Message
	}
	return f.Code + ": " + f.Message
}

// Codes that flowhost itself puts into failures.
const (
	CodeExpression   = "expression"    // an expression of the flow file could not be evaluated
	CodeModule       = "module"        // the module is missing or cannot be hosted
	CodeFunction     = "function"      // the module has no such function
	CodeGrant        = "grant"         // a granted directory cannot be opened on this machine
	CodeInputSize    = "input_size"    // the input is over its limit
	CodeOutputSize   = "output_size"   // the output is over its limit
	CodeOutputStore  = "output_store"  // the output could not be stored as an artifact
	CodeOutputFormat = "output_format" // the output is not JSON
	CodeMemory       = "memory"        // the memory limit was reached
	CodeFuel         = "fuel"          // the units of the call were used up
	CodeDepth        = "depth"         // the guest's functions called each other too deeply
	CodeTrap         = "trap"          // a wasm trap or a panic
	CodeExit         = "exit"          // the guest ended itself with a status
	CodeStuck        = "stuck"         // the call did not end when it was interrupted
	CodeTimeout      = "timeout"       // the attempt's or the run's time was up
	CodeHeartbeat    = "heartbeat"     // the attempt was silent for too long
	CodeCanceled     = "canceled"      // canceled by request
	CodeDenied       = "denied"        // not granted
	CodeLost         = "lost"          // the host stopped during the attempt
	CodeDefinition   = "definition"    // the recorded definition of the flow cannot be loaded any more
	CodeUpstream     = "upstream"      // something the task depends on did not succeed
	CodeLeftOut      = "left_out"      // not taken over: it had not ended in the run that this one was made of
	CodeRace         = "race"          // another member of a race was first
	CodeRefused      = "refused"       // an approval was asked for and not given
	CodeNesting      = "nesting"       // too many runs of sub-flows within each other
	CodeConcurrency  = "concurrency"   // the flow's concurrency limit ended the run
)
