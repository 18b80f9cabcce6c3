package run

// State is the state of a run or a task run. It is stored as its string.
type State string

// States of runs and task runs. Pending belongs to runs, Waiting, Ready and
// Skipped to task runs, the others to both.
const (
	Pending   State = "pending"   // accepted, not started yet
	Waiting   State = "waiting"   // depends on something unfinished
	Ready     State = "ready"     // may start when due and when a worker is free
	Running   State = "running"   // an attempt is under way
	Succeeded State = "succeeded" // ended well
	Failed    State = "failed"    // ended without success
	Skipped   State = "skipped"   // ended without an attempt, by the flow's own wiring
	Canceled  State = "canceled"  // ended by request
)

// Done reports whether s is final.
func (s State) Done() bool {
	switch s {
	case Succeeded, Failed, Skipped, Canceled:
		return true
	}
	return false
}

// Outcome is how an attempt ended. It is stored as its string.
type Outcome string

// Outcomes of an attempt.
const (
	OutcomeSucceeded Outcome = "succeeded"
	OutcomeFailed    Outcome = "failed"    // the guest reported it
	OutcomeRejected  Outcome = "rejected"  // the host did not take the call, its input or its output
	OutcomeTrapped   Outcome = "trapped"   // the guest broke: trap, panic, memory, exit in the middle
	OutcomeTimedOut  Outcome = "timed_out" // the deadline passed
	OutcomeCanceled  Outcome = "canceled"  // the run or the task was canceled
	OutcomeDenied    Outcome = "denied"    // the guest needed something it was not granted
	OutcomeLost      Outcome = "lost"      // the host went away before the end was recorded
)

// State is the state of a task run whose last attempt ended with o.
func (o Outcome) State() State {
	switch o {
	case OutcomeSucceeded:
		return Succeeded
	case OutcomeCanceled:
		return Canceled
	}
	return Failed
}
