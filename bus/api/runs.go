package api

import (
	"encoding/json"
	"slices"

	"github.com/flowhost/flowhost/run"
)

// RunRequest names the run that a request is about.
type RunRequest struct {
	Run run.ID `json:"run"`
}

// Check refuses a request that cannot be right, with a *run.RequestError.
func (b *RunRequest) Check() error {
	if _, err := run.ParseID(string(b.Run)); err != nil {
		return run.Requestf(run.RequestParams, "%s", err)
	}
	return nil
}

// ListRequest is a query with its times and states checked.
type ListRequest struct{ run.Query }

// runStates are the states of runs, in the order of their life.
var runStates = []run.State{run.Pending, run.Running, run.Succeeded, run.Failed, run.Canceled}

// Check refuses a request that cannot be right, with a *run.RequestError.
func (b *ListRequest) Check() error {
	for _, s := range b.States {
		if !slices.Contains(runStates, s) {
			return run.Requestf(run.RequestParams, "%q is no state of a run: pending, running, succeeded, failed or canceled is expected", s)
		}
	}
	if b.Before != "" {
		if _, err := run.ParseID(string(b.Before)); err != nil {
			return run.Requestf(run.RequestParams, "before: %s", err)
		}
	}
	if b.Limit < 0 {
		return run.Requestf(run.RequestParams, "limit: %d is less than 0", b.Limit)
	}
	return nil
}

// WatchRequest asks for a run's record once it has changed.
type WatchRequest struct {
	RunRequest
	Seen  uint64 `json:"seen"`  // version that the sender has
	Brief bool   `json:"brief"` // without the inputs and outputs of tasks
}

// CancelRequest cancels a run, or a task of it.
type CancelRequest struct {
	RunRequest
	Task   string `json:"task"` // empty for the whole run
	Key    string `json:"key"`  // of the task's item in a fan-out
	Reason string `json:"reason"`
}

// Check refuses a request that cannot be right, with a *run.RequestError.
func (b *CancelRequest) Check() error {
	if b.Key != "" && b.Task == "" {
		return run.Requestf(run.RequestParams, "a key needs a task: name the task, or leave the key out")
	}
	return b.RunRequest.Check()
}

// RetryRequest asks for a new run of an earlier one.
type RetryRequest struct {
	RunRequest
	Whole      bool   `json:"whole"` // run all tasks again, not only those that did not succeed
	Task       string `json:"task"`  // the only one to run again
	Key        string `json:"key"`   // of the only item of it
	Downstream bool   `json:"downstream"`
	Definition string `json:"definition"` // "current", which is also the default, or "recorded"

	Within []run.TaskRef `json:"within"` // the tasks with a sub-flow that lead to the task, the outermost first

	Params      map[string]json.RawMessage `json:"params"`       // in the place of the run's
	FreshParams bool                       `json:"fresh_params"` // the others from the trigger, not from the run
}

// Definitions with which a run may be made again.
const (
	definitionCurrent  = "current"
	definitionRecorded = "recorded"
)

// Check refuses a request that cannot be right, with a *run.RequestError.
func (b *RetryRequest) Check() error {
	switch {
	case b.Task == "" && (b.Key != "" || b.Downstream || len(b.Within) > 0):
		return run.Requestf(run.RequestParams, "key, within and downstream are for a task, and none is given")
	case slices.ContainsFunc(b.Within, func(ref run.TaskRef) bool { return ref.Task == "" }):
		return run.Requestf(run.RequestParams, "within names tasks, and one has no name")
	case b.Whole && b.Task != "":
		return run.Requestf(run.RequestParams, "either whole or a task")
	case b.Definition != "" && b.Definition != definitionCurrent && b.Definition != definitionRecorded:
		return run.Requestf(run.RequestParams, "the definition is %q or %q", definitionCurrent, definitionRecorded)
	}
	return b.RunRequest.Check()
}

// Again is the request in the words of run.
func (b *RetryRequest) Again() run.RerunOptions {
	return run.RerunOptions{
		Whole: b.Whole, Within: b.Within, Task: run.TaskRef{Task: b.Task, Key: b.Key}, Downstream: b.Downstream,
		Recorded: b.Definition == definitionRecorded, Params: b.Params, FreshParams: b.FreshParams,
	}
}
