package api

import (
	"encoding/json"
	"strings"

	"github.com/flowhost/flowhost/run"
)

// maxStated bounds a reason: it is kept with the schedule or the backfill.
const maxStated = 1024

func checkReason(reason string) error {
	if len(reason) > maxStated {
		return run.Requestf(run.RequestParams, "reason: %d bytes are more than %d", len(reason), maxStated)
	}
	return nil
}

// ScheduleRequest names a schedule.
type ScheduleRequest struct{ run.ScheduleRef }

// Check refuses a request that cannot be right, with a *run.RequestError.
func (b *ScheduleRequest) Check() error {
	switch {
	case b.Flow == "":
		return run.Requestf(run.RequestParams, "flow is missing")
	case b.Trigger == "":
		return run.Requestf(run.RequestParams, "trigger is missing: the name of a schedule of the flow")
	}
	return nil
}

// SchedulesRequest asks for the state of schedules.
type SchedulesRequest struct {
	run.ScheduleRef        // the only one to list; without a trigger, those of the flow; empty for all
	After           string `json:"after"` // cursor: only schedules that come later, "flow/trigger"
}

// Check refuses a request that cannot be right, with a *run.RequestError.
func (b *SchedulesRequest) Check() error {
	if b.Flow == "" && b.Trigger != "" {
		return run.Requestf(run.RequestParams, "a trigger needs its flow: name the flow, or leave the trigger out")
	}
	if b.After == "" {
		return nil
	}
	if _, ok := run.ParseScheduleRef(b.After); !ok {
		return run.Requestf(run.RequestParams, `after: %q is no cursor: "flow/trigger" is expected`, b.After)
	}
	return nil
}

// Matches reports whether a schedule is asked for.
func (b *SchedulesRequest) Matches(ref run.ScheduleRef) bool {
	after, _ := run.ParseScheduleRef(b.After)
	return (b.Flow == "" || b.Flow == ref.Flow) && (b.Trigger == "" || b.Trigger == ref.Trigger) && ref.Compare(after) > 0
}

// SchedulesPage is the answer to schedules.
type SchedulesPage struct {
	Schedules []run.ScheduleStatus `json:"schedules"`
	Next      string               `json:"next,omitempty"` // cursor of what did not fit
}

// ChangedAnswer is the answer to pause and resume.
type ChangedAnswer struct {
	Schedules []run.ScheduleRef `json:"schedules"` // those that were changed
}

// PauseRequest pauses a schedule, or all of a flow.
type PauseRequest struct {
	run.ScheduleRef        // without a trigger: all schedules of the flow
	Reason          string `json:"reason"` // for those who find it paused
}

// Check refuses a request that cannot be right, with a *run.RequestError.
func (b *PauseRequest) Check() error {
	switch {
	case b.Flow == "":
		return run.Requestf(run.RequestParams, "flow is missing")
	case strings.TrimSpace(b.Reason) == "":
		return run.Requestf(run.RequestParams, "reason is missing: it is shown to whoever finds the schedule paused")
	}
	return checkReason(b.Reason)
}

// ResumeRequest resumes a paused schedule, or all of a flow.
type ResumeRequest struct {
	run.ScheduleRef // without a trigger: all schedules of the flow
}

// Check refuses a request that cannot be right, with a *run.RequestError.
func (b *ResumeRequest) Check() error {
	if b.Flow == "" {
		return run.Requestf(run.RequestParams, "flow is missing")
	}
	return nil
}

// FireRequest starts a run of a schedule now.
type FireRequest struct {
	run.ScheduleRef
	Params map[string]json.RawMessage `json:"params,omitempty"` // by name; others come from the trigger and the defaults
	Key    string                     `json:"key,omitempty"`    // the same key for the same flow makes one run within a day
}

// Check refuses a request that cannot be right, with a *run.RequestError.
func (b *FireRequest) Check() error { return (&ScheduleRequest{b.ScheduleRef}).Check() }
