package engine

import (
	"fmt"
	"slices"
	"time"

	"github.com/flowhost/flowhost/flows"
	"github.com/flowhost/flowhost/run"
)

// fireResult is what has become of a nominal time.
type fireResult uint8

const (
	fireDecided    fireResult = iota // finally
	fireRefused                      // the engine accepts no run now, and nothing is decided
	fireEvaluating                   // it is decided once the flow has admitted it
)

// fire decides one nominal time, finally: its run is accepted together with the
// watermark, or the watermark records that there is none.
func (ss *schedules) fire(s *schedule, nominal time.Time) fireResult {
	if blocking := s.blocking(); blocking != nil {
		ss.exec.log.Info("a schedule skips a time: an earlier run is still open",
			"flow", s.ref.Flow, "trigger", s.ref.Trigger, "nominal", nominal, "run", blocking.run.ID, "overlap", s.spec.Overlap)
		ss.skip(s, nominal, 1, run.DropOverlap)
		return fireDecided
	}
	switch {
	case s.evaluating:
		return fireEvaluating
	case ss.exec.refusal() != nil:
		return fireRefused
	}
	advanced := &run.ScheduleAdvanced{ScheduleRef: s.ref, Nominal: nominal.UTC()}
	request := run.Request{Flow: s.ref.Flow, Trigger: run.Trigger{Kind: run.TriggerSchedule, Name: s.ref.Trigger, Time: nominal.UTC()}}
	a := ss.admission(s, request)
	if a == nil {
		return fireEvaluating
	}
	receipt, err := ss.exec.accept(request, a, advanced)
	switch {
	case err != nil:
		ss.exec.log.Error("a scheduled run was not started", "flow", s.ref.Flow, "trigger", s.ref.Trigger, "nominal", nominal, "error", err)
		ss.skip(s, nominal, 1, run.DropRejected)
		return fireDecided
	case !receipt.Accepted:
		ss.exec.log.Info("a schedule skips a time: the flow's runs are at their limit", "flow", s.ref.Flow, "trigger", s.ref.Trigger, "nominal", nominal)
		ss.skip(s, nominal, 1, run.DropLimit)
		return fireDecided
	}
	ss.fired++
	ss.replace(s, receipt.Run)
	return fireDecided
}

// scheduledAdmission is what a flow makes of a nominal time.
type scheduledAdmission struct {
	admission
	nominal time.Time
}

// try lets the flow admit the request, as [evaluations.try] does.
func (a *scheduledAdmission) try(units int, request run.Request) (enough bool) {
	a.Admission, enough, a.err = a.flow.TryAdmit(units, request)
	return enough
}

// admission lets the flow of a schedule admit a nominal time. It is nil while that takes
// long; the time is decided again when it has ended.
func (ss *schedules) admission(s *schedule, request run.Request) *admission {
	if a := s.admitted; a != nil && a.flow == s.flow && a.nominal.Equal(request.Trigger.Time) {
		s.admitted = nil
		return &a.admission
	}
	a := &scheduledAdmission{admission: admission{flow: s.flow}, nominal: request.Trigger.Time}
	if ss.exec.evaluations.try(func(units int) bool { return a.try(units, request) }) {
		return &a.admission
	}
	s.evaluating = true
	ss.exec.evaluations.begin(&evaluation{flow: s.ref.Flow, work: func() { a.try(0, request) }, then: func() {
		s.evaluating, s.admitted = false, a
		ss.decideDue(s)
	}})
	return nil
}

// blocking is the run that keeps the schedule from making another one now; nil for
// none. Waiting runs count: their number is bounded.
func (s *schedule) blocking() *openRun {
	limit := 0
	switch s.spec.Overlap {
	case flows.OverlapSkip:
		limit = 1
	case flows.OverlapQueueOne:
		limit = 2
	case flows.OverlapQueue, flows.OverlapNode:
		limit = 1 + s.spec.OverlapMax
	default:
		return nil
	}
	if len(s.open) < limit {
		return nil
	}
	return s.open[0]
}

// replace cancels the runs of a schedule in favor of a new one, where its overlap
// policy requires that.
func (ss *schedules) replace(s *schedule, by run.ID) {
	if s.spec == nil || s.spec.Overlap != flows.OverlapCancelRunning {
		return
	}
	for _, o := range slices.Clone(s.open) {
		if o.run.ID != by {
			ss.exec.cancel(o, canceled("the schedule has fired again, and its overlap is "+string(flows.OverlapCancelRunning)))
		}
	}
}

// OverlapError is returned for a requested fire while the schedule's overlap policy
// lets no further run start.
type OverlapError struct {
	Schedule run.ScheduleRef
	Run      run.ID // that is still open
	Overlap  string // the policy
}

func (e *OverlapError) Error() string {
	return fmt.Sprintf("run %s of %s is still open, and its overlap is %q: wait for its end, or cancel it", e.Run, e.Schedule, e.Overlap)
}

// fireNow makes a run of a schedule on request. Its nominal time is now; the schedule
// itself does not change.
func (ss *schedules) fireNow(s *schedule, request run.Request, a *admission) (run.Receipt, error) {
	if first, known := ss.exec.shard.Keys.Run(request.Flow, request.Key, ss.exec.clock.now()); known {
		return run.Receipt{Run: first, Accepted: true, Repeated: true}, nil
	}
	if err := ss.exec.refusal(); err != nil {
		return run.Receipt{}, err
	}
	if s.spec != nil {
		if blocking := s.blocking(); blocking != nil {
			return run.Receipt{}, &OverlapError{Schedule: s.ref, Run: blocking.run.ID, Overlap: string(s.spec.Overlap)}
		}
	}
	if s.flow != a.flow {
		return run.Receipt{}, errRedeployed
	}
	receipt, err := ss.exec.accept(request, a)
	if receipt.Accepted {
		ss.replace(s, receipt.Run)
	}
	return receipt, err
}
