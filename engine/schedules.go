package engine

import (
	"fmt"
	"slices"
	"time"

	"github.com/flowhost/flowhost/flows"
	"github.com/flowhost/flowhost/run"
	"github.com/flowhost/flowhost/scheduler"
)

// postponement is the delay before a fire is retried when the engine is at its
// open-run limit.
const postponement = time.Second

// schedules are the schedule triggers that are deployed or have open runs, with the
// backfills of them. The loop owns them.
type schedules struct {
	exec    *executor
	byRef   map[run.ScheduleRef]*schedule
	fired   uint64 // nominal times that made a run, since the start
	dropped uint64 // nominal times that made none

	backfillsDue  bool // backfills may be able to continue
	backfillTimer bool // a timer is armed that continues them when there may be room

	backfilled map[run.ID]*scheduledAdmission // by backfill: the next time that its flow has admitted; nil while it does
}

// schedule is a schedule trigger, as the executor keeps it beside its recorded state.
type schedule struct {
	ref      run.ScheduleRef
	flow     *flows.Flow    // as it is deployed; nil while it is not
	spec     *flows.Trigger // of flow; nil while the trigger is not deployed or off
	timer    scheduler.Timer
	armed    bool       // timer has a place among those of one instant, by priority
	priority int        // of the flow as it was deployed last
	next     time.Time  // the nominal time that the timer is armed for; the zero time for none
	open     []*openRun // its runs that are not finished, in the order in which they were accepted

	evaluating bool                // its flow still admits a nominal time, with which it continues
	admitted   *scheduledAdmission // that is to be decided next; nil for none
}

// schedule finds a schedule, or creates it.
func (ss *schedules) schedule(ref run.ScheduleRef) *schedule {
	s := ss.byRef[ref]
	if s == nil {
		s = &schedule{ref: ref}
		ss.byRef[ref] = s
	}
	return s
}

// deploySchedules replaces the schedules of a flow. A schedule that is new, was
// disabled or has another spec begins now: an edit makes no past time due.
func (ss *schedules) deploySchedules(f *flows.Flow) {
	for _, t := range f.Triggers { // in order of declaration: at one instant they fire in it
		if t.Kind == run.TriggerSchedule {
			ss.applySpec(ss.schedule(run.ScheduleRef{Flow: f.Name, Trigger: t.Name}), f)
		}
	}
	for ref := range ss.exec.shard.Schedules {
		if t := f.Trigger(ref.Trigger); ref.Flow == f.Name && (t == nil || t.Kind != run.TriggerSchedule) {
			ss.applySpec(ss.schedule(ref), f)
		}
	}
}

// applySpec updates a schedule from its flow.
func (ss *schedules) applySpec(s *schedule, f *flows.Flow) {
	spec := ""
	if s.armed && s.priority != f.Priority { // its place in the heap is of another priority
		ss.exec.clock.timers.Cancel(s.timer)
		s.armed = false
	}
	s.flow, s.spec, s.priority = f, nil, f.Priority
	if t := f.Trigger(s.ref.Trigger); t != nil && t.Kind == run.TriggerSchedule && t.Enabled {
		s.spec, spec = t, t.Identity
	}
	known := ss.exec.shard.Schedules[s.ref]
	if known == nil && spec == "" {
		return
	}
	if known == nil || known.Spec != spec {
		ss.exec.commits.record(run.Event{At: ss.exec.clock.now(), Data: &run.ScheduleSet{ScheduleRef: s.ref, Spec: spec, From: ss.exec.clock.now()}})
	}
	ss.correct(s)
	ss.arm(s)
}

// undeploy removes the flows that are not in a set: they make no new runs. The
// recorded state of their schedules stays, as over a restart without them: a schedule
// that is deployed again unchanged continues where it was, by its policy for missed
// times, and stays paused if it was.
func (ss *schedules) undeploy(set *flows.Set) {
	for name := range ss.exec.flows {
		if set.Flow(name) == nil {
			delete(ss.exec.flows, name)
		}
	}
	for ref, s := range ss.byRef {
		if s.flow == nil || ss.exec.flows[ref.Flow] != nil {
			continue
		}
		s.flow, s.spec = nil, nil
		ss.arm(s)
		if len(s.open) == 0 {
			delete(ss.byRef, ref)
		}
	}
}

// arm arms a schedule for its first nominal time that is not decided.
func (ss *schedules) arm(s *schedule) {
	ss.exec.clock.timers.Cancel(s.timer)
	s.next = time.Time{}
	known := ss.exec.shard.Schedules[s.ref]
	if s.spec == nil || known == nil || known.Pause != nil {
		return
	}
	nominal, more := s.spec.Schedule.Next(known.Decided)
	if !more || s.finished(known) {
		ss.exec.log.Info("a schedule has ended", "flow", s.ref.Flow, "trigger", s.ref.Trigger, "fired", known.Fired)
		return
	}
	s.next = nominal
	ss.rearm(s, s.spec.Jitter.Due(s.spec.Schedule, nominal))
}

// rearm puts a schedule back into the heap. Schedules that are due at one instant fire
// by priority, then in order of declaration: a schedule keeps its place.
func (ss *schedules) rearm(s *schedule, due time.Time) {
	alarm := func() { ss.decideDue(s) }
	ss.exec.clock.timers.Cancel(s.timer)
	if s.armed {
		s.timer = ss.exec.clock.timers.AddAgain(due, s.timer, alarm)
		return
	}
	timer, err := ss.exec.clock.timers.AddPriority(due, int8(s.flow.Priority), alarm)
	if err != nil {
		ss.exec.fail(fmt.Errorf("cannot arm a schedule: %w", err))
	}
	s.timer, s.armed = timer, true
}

// finished reports whether the schedule has made all runs that it may make.
func (s *schedule) finished(known *run.Schedule) bool {
	return s.spec.Count > 0 && known.Fired >= s.spec.Count
}

// decideDue decides the nominal times that have become due: usually one; after a
// downtime, a suspend or a jump of the clock those that the policy selects.
func (ss *schedules) decideDue(s *schedule) {
	known := ss.exec.shard.Schedules[s.ref]
	if s.spec == nil || known == nil || known.Pause != nil || ss.exec.draining || s.evaluating {
		return
	}
	if a := s.admitted; a != nil && a.nominal.After(known.Decided) && !s.finished(known) { // also if the policy has another one by now
		if !ss.decideOne(s, a.nominal) {
			return
		}
	}
	ss.decideBy(s, s.spec.Policy, run.DropMisfire)
}

// decideOne decides a nominal time. It reports false if it cannot: the schedule continues
// with it later.
func (ss *schedules) decideOne(s *schedule, nominal time.Time) bool {
	switch ss.fire(s, nominal) {
	case fireRefused:
		ss.postpone(s, nominal)
		return false
	case fireEvaluating:
		return false
	}
	return true
}

// decideBy decides everything that is due now by a policy, and arms the schedule for
// the next time.
func (ss *schedules) decideBy(s *schedule, policy scheduler.Policy, reason string) {
	known := ss.exec.shard.Schedules[s.ref]
	d := policy.Decide(s.spec.Schedule, s.spec.Jitter, known.Decided, ss.exec.clock.now())
	if d.Dropped > 0 {
		ss.drop(s, d, reason)
	}
	for _, nominal := range d.Fire {
		if s.finished(known) {
			break
		}
		if !ss.decideOne(s, nominal) {
			return
		}
	}
	ss.arm(s)
}

// drop records that nominal times do not fire. They lie before those that do.
func (ss *schedules) drop(s *schedule, d scheduler.Decision, reason string) {
	until := d.Until
	if len(d.Fire) > 0 {
		until, _ = s.spec.Schedule.Prev(d.Fire[0])
	}
	ss.exec.log.Warn("a schedule drops the times that it has missed", "flow", s.ref.Flow, "trigger", s.ref.Trigger,
		"until", until, "dropped", d.Dropped, "reason", reason, "catch_up", s.spec.Policy.CatchUp.String())
	ss.skip(s, until, d.Dropped, reason)
}

// skip moves the watermark over nominal times that make no run.
func (ss *schedules) skip(s *schedule, until time.Time, dropped int, reason string) {
	ss.dropped += uint64(dropped)
	ss.exec.commits.record(run.Event{At: ss.exec.clock.now(), Data: &run.ScheduleAdvanced{
		ScheduleRef: s.ref, Nominal: until.UTC(), Dropped: dropped, Reason: reason,
	}})
}

// postpone retries a nominal time later because the engine accepts no run now. The
// time is not lost: it stays undecided, also over a restart.
func (ss *schedules) postpone(s *schedule, nominal time.Time) {
	s.next = nominal
	ss.rearm(s, ss.exec.clock.now().Add(postponement))
}

// noteOpened notes a run that a schedule has made, whether it was due or requested.
func (ss *schedules) noteOpened(o *openRun) {
	t := o.flow.Trigger(o.run.Trigger.Name)
	if t == nil || t.Kind != run.TriggerSchedule || o.run.Trigger.Kind == run.TriggerBackfill {
		return
	}
	o.schedule, o.overlap = ss.schedule(run.ScheduleRef{Flow: o.run.Flow, Trigger: t.Name}), t.Overlap
	o.schedule.open = append(o.schedule.open, o)
}

// noteClosed notes the end of a run that a schedule or a backfill has made.
func (ss *schedules) noteClosed(o *openRun) {
	if o.run.Trigger.Kind == run.TriggerBackfill {
		ss.backfillsDue = true
	}
	s := o.schedule
	if s == nil {
		return
	}
	s.open = slices.DeleteFunc(s.open, func(other *openRun) bool { return other == o })
	waiting := o.waiters
	o.waiters = nil
	ss.exec.releaseWaiters(waiting)
	ss.pauseFailing(s)
	if s.flow == nil && len(s.open) == 0 {
		delete(ss.byRef, s.ref)
	}
}

// pauseFailing pauses a schedule when as many of its runs in a row have failed as its
// flow allows.
func (ss *schedules) pauseFailing(s *schedule) {
	known := ss.exec.shard.Schedules[s.ref]
	if s.spec == nil || known == nil || known.Pause != nil || s.spec.PauseAfter == 0 || known.Failures < s.spec.PauseAfter {
		return
	}
	ss.pauseSchedule(s, fmt.Sprintf("%d runs in a row have failed", known.Failures))
	ss.exec.log.Error("a schedule was paused because its runs fail", "flow", s.ref.Flow, "trigger", s.ref.Trigger, "failures", known.Failures)
}

// maxAhead is how far the watermark of a schedule may be ahead of the clock: a clock
// that was set back a little makes nothing due again, but a clock that was wrong by
// years must not keep schedules waiting until then.
const maxAhead = 24 * time.Hour

// correct restarts a schedule whose watermark comes from a wrong clock.
func (ss *schedules) correct(s *schedule) {
	known := ss.exec.shard.Schedules[s.ref]
	if known == nil || s.spec == nil || known.Decided.Sub(ss.exec.clock.now()) <= maxAhead {
		return
	}
	ss.exec.log.Error("the watermark of a schedule came from a wrong clock; the schedule restarts now", "flow", s.ref.Flow, "trigger", s.ref.Trigger,
		"decided", known.Decided, "now", ss.exec.clock.now())
	ss.exec.commits.record(run.Event{At: ss.exec.clock.now(), Data: &run.ScheduleSet{ScheduleRef: s.ref, Spec: known.Spec, From: ss.exec.clock.now()}})
}
