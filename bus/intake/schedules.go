package intake

import (
	"context"

	"github.com/flowhost/flowhost/bus/api"
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

// schedules answers with the state of schedules, in the order of their names.
func (d *requests) schedules(hard context.Context, m inbound) {
	var body api.SchedulesRequest
	if !d.decode(m, &body) {
		return
	}
	d.read(hard, m, func(ctx context.Context) answer {
		deployed, err := d.config.Schedules.Schedules(ctx)
		if err != nil {
			return d.faultOf("", err)
		}
		all := []run.ScheduleStatus{}
		for _, s := range deployed {
			if body.Matches(s.ScheduleRef) {
				all = append(all, s)
			}
		}
		return d.shorten(len(all), func(n int) any {
			page := api.SchedulesPage{Schedules: all[:n]}
			if n > 0 && n < len(all) {
				page.Next = all[n-1].String()
			}
			return page
		})
	})
}

// change answers a command on schedules once it is recorded.
func (d *requests) change(m inbound, changed []run.ScheduleRef, err error) {
	if err != nil {
		d.respond(m, d.faultOf("", err))
		return
	}
	d.respond(m, answer{body: api.ChangedAnswer{Schedules: changed}})
}

// pause stops schedules until they are resumed.
func (d *requests) pause(hard context.Context, m inbound) {
	var body api.PauseRequest
	if d.decode(m, &body) {
		changed, err := d.config.Schedules.Pause(hard, body.ScheduleRef, body.Reason)
		d.change(m, changed, err)
	}
}

// resume resumes paused schedules.
func (d *requests) resume(hard context.Context, m inbound) {
	var body api.ResumeRequest
	if d.decode(m, &body) {
		changed, err := d.config.Schedules.Resume(hard, body.ScheduleRef)
		d.change(m, changed, err)
	}
}

// fire makes a run of a schedule now.
func (d *requests) fire(hard context.Context, m inbound) {
	var body api.FireRequest
	if !d.decode(m, &body) {
		return
	}
	d.start(hard, m,
		func(bool) (run.Receipt, error) {
			return d.config.Schedules.Fire(hard, body.ScheduleRef, run.Request{Params: body.Params, Key: keyOf(body.Key)})
		},
		func(err error) { d.respond(m, d.faultOf("", err)) })
}
