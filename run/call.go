package run

import (
	"encoding/json"
	"errors"
	"time"
)

// Call is everything a host must know to run one attempt of one task. It
// travels: a worker on another machine gets the same bytes.
type Call struct {
	Run       ID        `json:"run"`
	Flow      string    `json:"flow"`
	Task      string    `json:"task"`
	Key       string    `json:"key,omitempty"`  // the item's key in a fan-out
	Attempt   int       `json:"attempt"`        // from 1
	Scheduled time.Time `json:"scheduled"`      // the run's nominal time; the guest's clock starts here
	Hops      int       `json:"hops,omitempty"` // of the run's trigger, see [HeaderHops]

	Module   string          `json:"module"`             // digest, "sha256:..."
	Function string          `json:"function,omitempty"` // export to call; empty for the module's only one
	Input    json.RawMessage `json:"input"`
	Config   json.RawMessage `json:"config,omitempty"`

	Timeout   time.Duration `json:"timeout,omitempty"`   // of this attempt; 0 is the host's default
	Heartbeat time.Duration `json:"heartbeat,omitempty"` // for how long the guest may be silent; 0: until its time is up
	Limits    Limits        `json:"limits"`
	Grants    Grants        `json:"grants,omitzero"`
}

// IdempotencyKey is the same for all attempts of a task run, so that an outside
// system can recognize a repeated side effect.
func (c *Call) IdempotencyKey() string {
	return string(c.Run) + "/" + c.Task + "/" + c.Key
}

// Limits bounds one call. A zero field is the host's default.
type Limits struct {
	Memory int64 `json:"memory,omitempty"` // bytes of linear memory
	Output int64 `json:"output,omitempty"` // bytes of output
	Log    int64 `json:"log,omitempty"`    // bytes of log that are kept

	// Fuel is units of work, about one for each instruction: the same call uses
	// the same number of them everywhere. Unlike the others it has no default.
	Fuel int64 `json:"fuel,omitempty"`
}

// The highest limits of a call. Output and log are memory of the host's own, and
// linear memory cannot be larger.
const (
	MaxMemory = 4 << 30
	MaxOutput = 16 << 20
	MaxLog    = 4 << 20
	MaxFuel   = 1<<63 - 1
)

// Result is how one call ended.
type Result struct {
	Outcome  Outcome         `json:"outcome"`
	Output   json.RawMessage `json:"output,omitempty"` // valid JSON, set on success
	Failure  *Failure        `json:"error,omitempty"`  // set unless the call succeeded
	Duration time.Duration   `json:"duration_ns"`
	Queued   time.Duration   `json:"queued_ns,omitempty"` // waiting for a place, for memory or for the module; not part of Duration, and not counted by the timeout
	Log      Log             `json:"log"`
	Fuel     int64           `json:"fuel,omitempty"` // units that were used, see [Limits]
}

// Log is what a guest wrote while it ran, bounded by [Limits.Log]: the
// beginning and the end are kept.
type Log struct {
	Lines   []LogLine `json:"lines,omitempty"`
	Dropped int       `json:"dropped,omitempty"` // lines left out between the beginning and the end
}

// LogLine is one line of a guest's log.
type LogLine struct {
	Level   string          `json:"level"` // debug, info, warn, error
	Message string          `json:"message"`
	Fields  json.RawMessage `json:"fields,omitempty"` // a JSON object
}

// Causes with which the context of a call ends. An Invoker turns them into the
// outcomes timed_out, for the first two, and canceled; any other cause means that the host stops
// and the attempt is lost.
var (
	ErrDeadline = errors.New("the attempt's time is up")
	ErrSilent   = errors.New("neither progress nor a heartbeat came in time")
	ErrCanceled = errors.New("canceled")
)
