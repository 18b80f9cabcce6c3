package api

import (
	"context"
	"encoding/json"

	"github.com/flowhost/flowhost/run"
)

// Schedules gives the state of schedules: all, those of the flow, or only the named
// one.
func (c *Client) Schedules(ctx context.Context, ref run.ScheduleRef) ([]run.ScheduleStatus, error) {
	var all []run.ScheduleStatus
	for body := (SchedulesRequest{ScheduleRef: ref}); ; {
		var page SchedulesPage
		if err := c.ask(ctx, VerbSchedules, body, &page); err != nil {
			return nil, err
		}
		all = append(all, page.Schedules...)
		if body.After = page.Next; page.Next == "" {
			return all, nil
		}
	}
}

// Pause stops a schedule, or all of a flow, and gives those that it has stopped.
func (c *Client) Pause(ctx context.Context, ref run.ScheduleRef, reason string) ([]run.ScheduleRef, error) {
	var answer ChangedAnswer
	err := c.ask(ctx, VerbPause, PauseRequest{ref, reason}, &answer)
	return answer.Schedules, err
}

// Resume resumes a paused schedule, or all of a flow, and gives those that it has resumed.
func (c *Client) Resume(ctx context.Context, ref run.ScheduleRef) ([]run.ScheduleRef, error) {
	var answer ChangedAnswer
	err := c.ask(ctx, VerbResume, ResumeRequest{ref}, &answer)
	return answer.Schedules, err
}

// Fire makes a run of a schedule now and gives its receipt once it is recorded.
func (c *Client) Fire(ctx context.Context, ref run.ScheduleRef, params map[string]json.RawMessage, key string) (run.Receipt, error) {
	return c.receipt(ctx, VerbFire, FireRequest{ref, params, key})
}

// Backfill starts a backfill and gives its plan without the times, or gives the
// whole plan when the request is a dry run.
func (c *Client) Backfill(ctx context.Context, request run.BackfillRequest) (run.BackfillPlan, error) {
	var all run.BackfillPlan
	for body := (BackfillRequest{request.Schedule, request}); ; {
		var page BackfillPage
		if err := c.ask(ctx, VerbBackfill, body, &page); err != nil {
			return run.BackfillPlan{}, err
		}
		if all.Total == 0 {
			all = page.BackfillPlan
		} else {
			all.Times = append(all.Times, page.Times...)
		}
		switch {
		case page.Next.IsZero():
			return all, nil
		case request.Reverse:
			body.To = page.Next
		default:
			body.From = page.Next
		}
	}
}

// Backfills gives the backfills that go and the last ones that have ended, newest
// first: all, or only the one of that id.
func (c *Client) Backfills(ctx context.Context, id run.ID) ([]Backfill, error) {
	var all []Backfill
	for body := (BackfillsRequest{ID: id}); ; {
		var page BackfillsPage
		if err := c.ask(ctx, VerbBackfills, body, &page); err != nil {
			return nil, err
		}
		all = append(all, page.Backfills...)
		if body.Before = page.Next; page.Next == "" {
			return all, nil
		}
	}
}

// CancelBackfill ends a backfill before its time: its runs that are going are
// canceled, the rest of its times makes none.
func (c *Client) CancelBackfill(ctx context.Context, id run.ID, reason string) error {
	var answer struct{}
	return c.ask(ctx, VerbCancelBackfill, CancelBackfillRequest{id, reason}, &answer)
}
