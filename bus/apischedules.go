package bus

import (
	"context"
	"encoding/json"
	"strings"

	"github.com/flowhost/flowhost/run"
)

// ScheduleControl is what an intake needs of an engine to show and change
// schedules. A reference without a trigger means all schedules of the flow.
type ScheduleControl interface {
	// Schedules gives those that are deployed, by flow and trigger.
	Schedules(ctx context.Context) ([]run.ScheduleStatus, error)
	// Pause and Resume give those that they have changed.
	Pause(ctx context.Context, ref run.ScheduleRef, reason string) ([]run.ScheduleRef, error)
	Resume(ctx context.Context, ref run.ScheduleRef) ([]run.ScheduleRef, error)
	// Fire makes a run now. The request's trigger is Fire's to fill in.
	Fire(ctx context.Context, ref run.ScheduleRef, request run.Request) (run.Receipt, error)
}

// maxStated bounds a reason: it is kept with the schedule or the backfill.
const maxStated = 1024

func checkReason(reason string) error {
	if len(reason) > maxStated {
		return run.Requestf(run.RequestParams, "reason: %d bytes are more than %d", len(reason), maxStated)
	}
	return nil
}

// scheduleBody names a schedule.
type scheduleBody struct{ run.ScheduleRef }

func (b *scheduleBody) check() error {
	switch {
	case b.Flow == "":
		return run.Requestf(run.RequestParams, "flow is missing")
	case b.Trigger == "":
		return run.Requestf(run.RequestParams, "trigger is missing: the name of a schedule of the flow")
	}
	return nil
}

type schedulesBody struct {
	run.ScheduleRef        // the only one to tell of; without a trigger, those of the flow; empty for all
	After           string `json:"after"` // cursor: only schedules that come later, "flow/trigger"
}

func (b *schedulesBody) check() error {
	if b.Flow == "" && b.Trigger != "" {
		return run.Requestf(run.RequestParams, "a trigger without its flow says nothing")
	}
	if b.After == "" {
		return nil
	}
	if _, ok := run.ParseScheduleRef(b.After); !ok {
		return run.Requestf(run.RequestParams, `after: %q is no cursor: "flow/trigger" is expected`, b.After)
	}
	return nil
}

func (b *schedulesBody) matches(ref run.ScheduleRef) bool {
	after, _ := run.ParseScheduleRef(b.After)
	return (b.Flow == "" || b.Flow == ref.Flow) && (b.Trigger == "" || b.Trigger == ref.Trigger) && ref.Compare(after) > 0
}

// schedulesPage is the answer to schedules.
type schedulesPage struct {
	Schedules []run.ScheduleStatus `json:"schedules"`
	Next      string               `json:"next,omitempty"` // cursor of what did not fit
}

// schedules answers with schedules as they stand, in the order of their names.
func (d *desk) schedules(hard context.Context, m inbound) {
	var body schedulesBody
	if !d.understood(m, &body) {
		return
	}
	d.read(hard, m, func(ctx context.Context) answer {
		deployed, err := d.config.Schedules.Schedules(ctx)
		if err != nil {
			return d.faultOf("", err)
		}
		all := []run.ScheduleStatus{}
		for _, s := range deployed {
			if body.matches(s.ScheduleRef) {
				all = append(all, s)
			}
		}
		return d.shorten(len(all), func(n int) any {
			page := schedulesPage{Schedules: all[:n]}
			if n > 0 && n < len(all) {
				page.Next = all[n-1].String()
			}
			return page
		})
	})
}

// changedBody is the answer to pause and resume.
type changedBody struct {
	Schedules []run.ScheduleRef `json:"schedules"` // those that were changed
}

// change answers a command on schedules once it is recorded.
func (d *desk) change(m inbound, changed []run.ScheduleRef, err error) {
	if err != nil {
		d.respond(m, d.faultOf("", err))
		return
	}
	d.respond(m, answer{body: changedBody{changed}})
}

type pauseBody struct {
	run.ScheduleRef        // without a trigger: all schedules of the flow
	Reason          string `json:"reason"` // for those who find it paused
}

func (b *pauseBody) check() error {
	switch {
	case b.Flow == "":
		return run.Requestf(run.RequestParams, "flow is missing")
	case strings.TrimSpace(b.Reason) == "":
		return run.Requestf(run.RequestParams, "reason is missing: say why, for those who find it paused")
	}
	return checkReason(b.Reason)
}

// pause stops schedules until they are resumed.
func (d *desk) pause(hard context.Context, m inbound) {
	var body pauseBody
	if d.understood(m, &body) {
		changed, err := d.config.Schedules.Pause(hard, body.ScheduleRef, body.Reason)
		d.change(m, changed, err)
	}
}

type resumeBody struct {
	run.ScheduleRef // without a trigger: all schedules of the flow
}

func (b *resumeBody) check() error {
	if b.Flow == "" {
		return run.Requestf(run.RequestParams, "flow is missing")
	}
	return nil
}

// resume lets paused schedules go on.
func (d *desk) resume(hard context.Context, m inbound) {
	var body resumeBody
	if d.understood(m, &body) {
		changed, err := d.config.Schedules.Resume(hard, body.ScheduleRef)
		d.change(m, changed, err)
	}
}

type fireBody struct {
	scheduleBody
	Params map[string]json.RawMessage `json:"params,omitempty"` // by name; others come from the trigger and the defaults
	Key    string                     `json:"key,omitempty"`    // the same key for the same flow makes one run within a day
}

// fire makes a run of a schedule now.
func (d *desk) fire(hard context.Context, m inbound) {
	var body fireBody
	if !d.understood(m, &body) {
		return
	}
	d.start(hard, m,
		func() (run.Receipt, error) {
			return d.config.Schedules.Fire(hard, body.ScheduleRef, run.Request{Params: body.Params, Key: keyOf(body.Key)})
		},
		func(err error) { d.respond(m, d.faultOf("", err)) })
}
