package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/flowhost/flowhost/run"
	"github.com/flowhost/flowhost/scheduler"
)

// Errors of commands on schedules.
var (
	ErrPaused    = errors.New("the schedule is paused already")
	ErrNotPaused = errors.New("the schedule is not paused")
	ErrDisabled  = errors.New("the schedule is not enabled in the flow")
)

// UnknownScheduleError is returned for a command on a schedule that is not deployed.
type UnknownScheduleError struct {
	Schedule run.ScheduleRef // without a trigger: the flow has no schedule at all
}

func (e *UnknownScheduleError) Error() string {
	if e.Schedule.Trigger == "" {
		return fmt.Sprintf("there is no flow %q with a schedule here", e.Schedule.Flow)
	}
	return fmt.Sprintf("flow %q has no schedule %q here", e.Schedule.Flow, e.Schedule.Trigger)
}

// Schedules returns the state of the deployed schedules, by flow and trigger.
func (e *Engine) Schedules(ctx context.Context) ([]run.ScheduleStatus, error) {
	var all []run.ScheduleStatus
	err := e.durably(ctx, func() error {
		for ref, s := range e.exec.schedules.byRef {
			if _, err := e.exec.schedules.deployed(ref); err == nil {
				all = append(all, e.exec.schedules.status(s))
			}
		}
		return nil
	})
	slices.SortFunc(all, func(a, b run.ScheduleStatus) int { return a.ScheduleRef.Compare(b.ScheduleRef) })
	return all, err
}

func (ss *schedules) status(s *schedule) run.ScheduleStatus {
	t := s.flow.Trigger(s.ref.Trigger)
	status := run.ScheduleStatus{
		Schedule:   run.Schedule{ScheduleRef: s.ref},
		Expression: t.Expression(), Zone: t.Zone, Enabled: t.Enabled, Next: s.next.UTC(), Open: []run.ID{},
	}
	if known := ss.exec.shard.Schedules[s.ref]; known != nil {
		status.Schedule = *known
	}
	if !s.next.IsZero() {
		status.Due = t.Jitter.Due(t.Schedule, s.next).UTC()
	}
	for _, o := range s.open {
		status.Open = append(status.Open, o.run.ID)
	}
	return status
}

// Pause stops a schedule, or all schedules of a flow if no trigger is named: nothing
// fires until Resume. It returns once that is durable.
func (e *Engine) Pause(ctx context.Context, ref run.ScheduleRef, reason string) ([]run.ScheduleRef, error) {
	return e.onSchedules(ctx, ref, func(s *schedule) error {
		switch known := e.exec.shard.Schedules[s.ref]; {
		case known == nil:
			return ErrDisabled // it never was enabled
		case known.Pause != nil:
			return ErrPaused
		}
		return e.exec.schedules.pauseSchedule(s, reason)
	})
}

func (ss *schedules) pauseSchedule(s *schedule, reason string) error {
	err := ss.exec.commits.record(run.Event{At: ss.exec.clock.now(), Data: &run.SchedulePaused{ScheduleRef: s.ref, Reason: reason}})
	if err == nil {
		ss.arm(s)
	}
	return err
}

// Resume continues a paused schedule, or all schedules of a flow if no trigger is
// named. Times that were missed meanwhile fire only where the flow states what to
// catch up with. It returns once that is durable.
func (e *Engine) Resume(ctx context.Context, ref run.ScheduleRef) ([]run.ScheduleRef, error) {
	return e.onSchedules(ctx, ref, func(s *schedule) error {
		if known := e.exec.shard.Schedules[s.ref]; known == nil || known.Pause == nil {
			return ErrNotPaused
		}
		err := e.exec.commits.record(run.Event{At: e.exec.clock.now(), Data: &run.ScheduleResumed{ScheduleRef: s.ref}})
		if err == nil && s.spec != nil {
			e.exec.schedules.decideBy(s, s.resumePolicy(), run.DropPaused)
		}
		return err
	})
}

// resumePolicy is the policy for the time of a pause. By default nothing is caught up:
// whoever pauses a schedule does not expect it to fire for that time.
func (s *schedule) resumePolicy() scheduler.Policy {
	policy := s.spec.Policy
	if !s.spec.CatchUpStated {
		policy.CatchUp, policy.MisfireAfter = scheduler.CatchUpNone, 1
	}
	return policy
}

// Fire makes a run of a schedule now, also while it is paused. Its overlap policy
// applies: Fire returns an *OverlapError if no run may start.
func (e *Engine) Fire(ctx context.Context, ref run.ScheduleRef, request run.Request) (run.Receipt, error) {
	if err := checkParams(request.Params); err != nil {
		return run.Receipt{}, err
	}
	request.Flow, request.Trigger = ref.Flow, run.Trigger{Kind: run.TriggerManual, Name: ref.Trigger, Time: e.exec.clock.now()}
	return e.receive(ctx, e.exec.commits.afterCommit, func() ask {
		a := e.admit(request)
		return func(answer answerRequest) {
			s, err := e.exec.schedules.deployed(ref)
			if err != nil {
				answer(run.Receipt{}, err)
				return
			}
			answer(e.exec.schedules.fireNow(s, request, a))
		}
	})
}

// deployed finds a schedule of a deployed flow.
func (ss *schedules) deployed(ref run.ScheduleRef) (*schedule, error) {
	if f := ss.exec.flows[ref.Flow]; f != nil {
		if t := f.Trigger(ref.Trigger); t != nil && t.Kind == run.TriggerSchedule {
			return ss.schedule(ref), nil
		}
	}
	return nil, &UnknownScheduleError{Schedule: ref}
}

// onSchedules applies a command to a schedule, or to all schedules of a flow, and
// returns those that it changed. If it changed none, it returns the error of the first
// one.
func (e *Engine) onSchedules(ctx context.Context, ref run.ScheduleRef, do func(*schedule) error) ([]run.ScheduleRef, error) {
	var done []run.ScheduleRef
	err := e.durably(ctx, func() error {
		meant, err := e.exec.schedules.selectSchedules(ref)
		if err != nil {
			return err
		}
		var first error
		for _, s := range meant {
			if err := do(s); err == nil {
				done = append(done, s.ref)
			} else if first == nil {
				first = err
			}
		}
		if len(done) > 0 {
			return nil
		}
		return first
	})
	return done, err
}

// selectSchedules gives the schedules to which a reference with or without a trigger
// refers.
func (ss *schedules) selectSchedules(ref run.ScheduleRef) ([]*schedule, error) {
	if ref.Trigger != "" {
		s, err := ss.deployed(ref)
		if err != nil {
			return nil, err
		}
		return []*schedule{s}, nil
	}
	var all []*schedule
	if f := ss.exec.flows[ref.Flow]; f != nil {
		for _, t := range f.Triggers {
			if t.Kind == run.TriggerSchedule {
				all = append(all, ss.schedule(run.ScheduleRef{Flow: f.Name, Trigger: t.Name}))
			}
		}
	}
	if len(all) == 0 {
		return nil, &UnknownScheduleError{Schedule: ref}
	}
	return all, nil
}

// durably runs f on the loop and returns its error once everything that it has
// recorded is durable.
func (e *Engine) durably(ctx context.Context, f func() error) error {
	answers := make(chan error, 1)
	err := e.command(ctx, func() {
		err := f()
		e.exec.commits.afterCommit(func() { answers <- err })
	})
	if err != nil {
		return err
	}
	answer, err := await(ctx, e, answers)
	if err != nil {
		return err
	}
	return answer
}
