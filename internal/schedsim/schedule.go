package schedsim

import (
	"slices"
	"time"

	"github.com/flowhost/flowhost/flows"
	"github.com/flowhost/flowhost/run"
	"github.com/flowhost/flowhost/scheduler"
)

// schedule is a schedule trigger and its state.
type schedule struct {
	*plan
	number  int // among all
	spec    *flows.Trigger
	decided time.Time // every nominal time up to it has made its run, or never will
	timer   scheduler.Timer
	open    []*openRun // its runs that are not finished, in the order in which they were accepted
	stats   *ScheduleReport
}

func newSchedule(number int, p *plan, t *flows.Trigger, from time.Time) *schedule {
	return &schedule{
		plan: p, number: number, spec: t, decided: from.Add(-1),
		stats: &ScheduleReport{Schedule: run.ScheduleRef{Flow: p.flow.Name, Trigger: t.Name}},
	}
}

// wind arms a schedule for its first nominal time that is not decided.
func (s *simulation) wind(sc *schedule) {
	s.queue.Cancel(sc.timer)
	nominal, more := sc.spec.Schedule.Next(sc.decided)
	if !more || sc.finished() || !nominal.Before(s.To) {
		return
	}
	sc.timer = s.after(sc.spec.Jitter.Due(sc.spec.Schedule, nominal), func() { s.decide(sc) })
}

// finished reports whether the schedule has made all runs that it may make.
func (sc *schedule) finished() bool { return sc.spec.Count > 0 && sc.stats.Runs >= sc.spec.Count }

// decide decides the nominal times that have become due: usually one; after an
// outage those that the policy takes.
func (s *simulation) decide(sc *schedule) {
	if s.down {
		return
	}
	d := sc.spec.Policy.Decide(sc.spec.Schedule, sc.spec.Jitter, sc.decided, s.now())
	sc.stats.Missed += d.Dropped
	for _, nominal := range d.Fire {
		if sc.finished() {
			break
		}
		s.fire(sc, nominal)
	}
	if d.Until.After(sc.decided) {
		sc.decided = d.Until
	}
	s.wind(sc)
}

// fire makes the run of a nominal time, or skips it.
func (s *simulation) fire(sc *schedule, nominal time.Time) {
	s.count(sc)
	if sc.blocked() {
		sc.stats.Skipped++
		return
	}
	admission, err := sc.flow.Admit(run.Request{
		Flow: sc.flow.Name, Trigger: run.Trigger{Kind: run.TriggerSchedule, Name: sc.spec.Name, Time: nominal.UTC()},
	})
	if err != nil {
		sc.stats.Rejected++
		sc.stats.Reason = err.Error()
		return
	}
	if s.limited(sc.flow, admission.Concurrency) {
		sc.stats.Skipped++
		return
	}
	if sc.spec.Overlap == flows.OverlapCancelRunning {
		s.replace(sc)
	}
	sc.stats.Runs++
	late := s.now().After(sc.spec.Jitter.Due(sc.spec.Schedule, nominal))
	if late {
		sc.stats.CaughtUp++
	}
	s.herds.note(s.now(), sc, late)
	s.accept(sc, nominal, admission.Concurrency)
}

// blocked reports whether runs that are going, or wait, let the schedule make no
// further one now.
func (sc *schedule) blocked() bool {
	switch sc.spec.Overlap {
	case flows.OverlapSkip:
		return len(sc.open) >= 1
	case flows.OverlapQueueOne:
		return len(sc.open) >= 2
	case flows.OverlapQueue, flows.OverlapNode:
		return len(sc.open) >= 1+sc.spec.OverlapMax
	}
	return false
}

// replace cancels the runs of a schedule in favor of the one that comes.
func (s *simulation) replace(sc *schedule) {
	for _, o := range slices.Clone(sc.open) {
		sc.stats.Canceled++
		s.cancel(o)
	}
}
