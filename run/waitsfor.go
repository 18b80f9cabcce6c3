package run

import "time"

// WaitsFor is why a task run does not compute, or a pending run does not start. It is
// found when a record is asked for, and never recorded: a run that is done has none. Its
// JSON form is stable.
type WaitsFor struct {
	Reason   WaitReason `json:"reason"`
	Tasks    []string   `json:"tasks,omitempty"`    // upstream: the first that are not done
	More     int        `json:"more,omitempty"`     // upstream: how many further ones are not done
	Limit    string     `json:"limit,omitempty"`    // limit, rate: its name
	Rate     string     `json:"rate,omitempty"`     // rate: as in the flow file, "100/15m"
	Next     time.Time  `json:"next,omitzero"`      // rate: when the next attempt may start
	Group    string     `json:"group,omitempty"`    // group: its name
	Key      string     `json:"key,omitempty"`      // concurrency: the run's key
	Run      ID         `json:"run,omitempty"`      // earlier_run: that run; concurrency: the run before this one in the line
	Position int        `json:"position,omitempty"` // concurrency, earlier_run: place of the run in the line, 1 for the next; not in lists
	InUse    int        `json:"in_use,omitempty"`   // of Max
	Max      int        `json:"max,omitempty"`      // workers, attempts in flight, slots or items; 0 where the reason has no bound
}

// What else a task run may wait for, and a pending run. A call that has begun waits for a
// worker, memory, its module or the end of a sleep.
const (
	WaitUpstream    WaitReason = "upstream"     // tasks, waits and groups before it
	WaitLimit       WaitReason = "limit"        // a slot of a limit
	WaitRate        WaitReason = "rate"         // the rate of a limit
	WaitInFlight    WaitReason = "in_flight"    // the end of an attempt: as many are in flight as may
	WaitGroup       WaitReason = "group"        // a slot of a group around it
	WaitMaxParallel WaitReason = "max_parallel" // items of the same fan-out
	WaitRetry       WaitReason = "retry"        // the time of the next attempt, which is the task run's due
	WaitEarlierRun  WaitReason = "earlier_run"  // an earlier run of the schedule, or the same task of it
	WaitConcurrency WaitReason = "concurrency"  // a slot of the flow's concurrency
	WaitExpression  WaitReason = "expression"   // the evaluation of an expression of the run that takes long
	WaitPaused      WaitReason = "paused"       // the operator: the host is paused, or has 0 workers
	WaitStopping    WaitReason = "stopping"     // the next start of the host, which is stopping
)
