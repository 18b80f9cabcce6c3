package bus

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"time"

	"github.com/flowhost/flowhost/run"
)

// listBody is a query with its times and states checked.
type listBody struct{ run.Query }

// runStates are the states of runs, in the order of their life.
var runStates = []run.State{run.Pending, run.Running, run.Succeeded, run.Failed, run.Canceled}

func (b *listBody) check() error {
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

// list answers with a page of runs, shorter than asked for when it has to be.
func (d *desk) list(hard context.Context, m inbound) {
	var body listBody
	if !d.understood(m, &body) {
		return
	}
	d.read(hard, m, func(ctx context.Context) answer {
		page, err := d.config.Control.List(ctx, body.Query)
		if err != nil {
			return d.faultOf("", err)
		}
		if page.Runs == nil {
			page.Runs = []run.Summary{}
		}
		return d.shorten(len(page.Runs), func(n int) any {
			if n < len(page.Runs) {
				page.Runs, page.Next = page.Runs[:n], page.Runs[n-1].Run
			}
			return page
		})
	})
}

// get answers with a run's record.
func (d *desk) get(hard context.Context, m inbound) {
	var body runBody
	if !d.understood(m, &body) {
		return
	}
	d.read(hard, m, func(ctx context.Context) answer {
		record, err := d.config.Control.Get(ctx, body.Run)
		if err != nil {
			return d.faultOf(body.Run, err)
		}
		return d.finished(record)
	})
}

type watchBody struct {
	runBody
	Seen  uint64 `json:"seen"`  // version that the sender has
	Brief bool   `json:"brief"` // without the inputs and outputs of tasks
}

// change is the answer to a watch. Without a record nothing has changed in time.
type change struct {
	Record  json.RawMessage `json:"record"`
	Version uint64          `json:"version"`
}

// watch answers with a run's record as soon as that is newer than what the sender
// has seen, or without one when that does not come in time.
func (d *desk) watch(hard context.Context, m inbound) {
	var body watchBody
	if !d.understood(m, &body) {
		return
	}
	d.linger(hard, m, func(ctx context.Context, wait time.Duration) answer {
		seen := body.Seen
		if wait == 0 {
			seen = 0 // the present one, at once
		}
		record, version, err := d.config.Control.Watch(ctx, body.Run, seen)
		switch {
		case err == nil && (version > body.Seen || record.State.Done()):
			return d.changed(record, version, body.Brief)
		case err == nil, wait > 0 && errors.Is(ctx.Err(), context.DeadlineExceeded):
			return answer{body: change{Version: body.Seen}}
		case d.soft.Err() != nil:
			return fault(body.Run, CodeUnavailable, errStopping.Error())
		}
		return d.faultOf(body.Run, err)
	})
}

func (d *desk) changed(record *run.Record, version uint64, brief bool) answer {
	var body json.RawMessage
	var err error
	if brief {
		body, err = fitting(record, nil, d.largest(), slim, folded)
	} else {
		body, err = encodeRecord(record, d.largest())
	}
	if err == nil {
		body, err = run.EncodeJSON(change{Record: body, Version: version})
	}
	if err == nil && len(body) > d.largest() {
		err = errors.New("its record is larger than a message may be")
	}
	if err != nil {
		return fault(record.Run, CodeTooLarge, "the run is "+string(record.State)+": "+err.Error())
	}
	return answer{body: rawBody(body)}
}

type cancelBody struct {
	runBody
	Task   string `json:"task"` // empty for the whole run
	Key    string `json:"key"`  // of the task's item in a fan-out
	Reason string `json:"reason"`
}

func (b *cancelBody) check() error {
	if b.Key != "" && b.Task == "" {
		return run.Requestf(run.RequestParams, "a key without a task says nothing")
	}
	return b.runBody.check()
}

// cancel stops a run or one task of it.
func (d *desk) cancel(hard context.Context, m inbound) {
	var body cancelBody
	if !d.understood(m, &body) {
		return
	}
	var err error
	if body.Task == "" {
		err = d.config.Control.Cancel(hard, body.Run, body.Reason)
	} else {
		err = d.config.Control.CancelTask(hard, body.Run, run.TaskRef{Task: body.Task, Key: body.Key}, body.Reason)
	}
	d.respond(m, d.done(body.Run, err))
}

type retryBody struct {
	runBody
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

func (b *retryBody) check() error {
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
	return b.runBody.check()
}

func (b *retryBody) again() run.RerunOptions {
	return run.RerunOptions{
		Whole: b.Whole, Within: b.Within, Task: run.TaskRef{Task: b.Task, Key: b.Key}, Downstream: b.Downstream,
		Recorded: b.Definition == definitionRecorded, Params: b.Params, FreshParams: b.FreshParams,
	}
}

// retry makes a new run of one that was there before.
func (d *desk) retry(hard context.Context, m inbound) {
	var body retryBody
	if !d.understood(m, &body) {
		return
	}
	d.start(hard, m,
		func() (run.Receipt, error) { return d.config.Control.Retry(hard, body.Run, body.again()) },
		func(err error) { d.respond(m, d.faultOf(body.Run, err)) })
}
