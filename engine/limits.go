package engine

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/flowhost/flowhost/flows"
	"github.com/flowhost/flowhost/internal/fairq"
	"github.com/flowhost/flowhost/run"
)

// limits are the limit blocks that are deployed, or that open runs refer to, by name.
type limits struct {
	clock  *clock
	byName map[string]*limitState
}

// limitState is a limit block with what uses it. Running attempts hold its slots and
// nothing else does: the slots are counted from the state of the runs, so none can
// leak.
type limitState struct {
	limit    *flows.Limit // the numbers in force
	slots    fairq.Limit  // paused while the rate lets no attempt start
	deployed bool
	runs     int // open runs whose flows refer to it

	starts []time.Time // of attempts, in order: the last ones, as many as the rate counts
	pause  countdown   // the end of the pause
}

// of gives the limits of a task, sorted by name. They are known while its run is open.
func (l *limits) of(t task) []*fairq.Limit {
	if len(t.spec.LimitedBy) == 0 {
		return nil
	}
	slots := make([]*fairq.Limit, len(t.spec.LimitedBy))
	for i, spec := range t.spec.LimitedBy {
		slots[i] = &l.byName[spec.Name].slots
	}
	return slots
}

// Limits gives the state of the limits that are deployed, and of those that open runs
// began with, by name.
func (e *Engine) Limits(ctx context.Context) ([]run.LimitStatus, error) {
	var all []run.LimitStatus
	err := e.command(ctx, func() {
		for _, s := range e.exec.limits.byName {
			all = append(all, s.status())
		}
	})
	slices.SortFunc(all, func(a, b run.LimitStatus) int { return cmp.Compare(a.Limit, b.Limit) })
	return all, err
}

func (s *limitState) status() run.LimitStatus {
	status := run.LimitStatus{Limit: s.limit.Name, Concurrency: s.limit.Concurrency, InUse: s.slots.Running(), Waiting: s.slots.Waiting()}
	if s.limit.Rate.Count > 0 {
		status.Rate = s.limit.Rate.String()
	}
	if s.slots.Paused {
		status.Next = s.pause.due.UTC()
	}
	return status
}

// deploy puts the numbers of limits in force for all runs, also those of earlier
// deployments. Limits that are no longer declared keep their numbers while runs refer
// to them.
func (l *limits) deploy(specs []*flows.Limit) {
	for _, s := range l.byName {
		s.deployed = false
	}
	for _, spec := range specs {
		s := l.state(spec)
		s.set(spec)
		s.deployed = true
		l.pace(s)
	}
	for _, s := range l.byName {
		l.forget(s)
	}
}

func (l *limits) state(spec *flows.Limit) *limitState {
	s := l.byName[spec.Name]
	if s == nil {
		s = new(limitState)
		s.set(spec)
		l.byName[spec.Name] = s
	}
	return s
}

func (s *limitState) set(spec *flows.Limit) { s.limit, s.slots.Max = spec, spec.Concurrency }

// retain notes that a run has been opened. The numbers of its definition are in force
// while none are deployed, which is before the first deployment after a restart.
func (l *limits) retain(o *openRun) {
	for _, spec := range o.flow.LimitedBy {
		s := l.state(spec)
		s.runs++
		if !s.deployed {
			s.set(spec)
		}
	}
}

// release notes that a run has ended.
func (l *limits) release(o *openRun) {
	for _, spec := range o.flow.LimitedBy {
		s := l.byName[spec.Name]
		s.runs--
		l.forget(s)
	}
}

func (l *limits) forget(s *limitState) {
	if !s.deployed && s.runs == 0 {
		l.unpause(s)
		delete(l.byName, s.limit.Name)
	}
}

// started notes that an attempt of a task starts now.
func (l *limits) started(t task) {
	for _, spec := range t.spec.LimitedBy {
		if s := l.byName[spec.Name]; s.limit.Rate.Count > 0 {
			s.started(l.clock.now())
			l.pace(s)
		}
	}
}

// started adds a start. The engine learns a little later that the clock was set back:
// until then only the order of starts counts.
func (s *limitState) started(at time.Time) {
	if n := len(s.starts); n > 0 && at.Before(s.starts[n-1]) {
		at = s.starts[n-1]
	}
	if n, count := len(s.starts), s.limit.Rate.Count; n >= 2*count {
		s.starts = append(s.starts[:0], s.starts[n-count+1:]...)
	}
	s.starts = append(s.starts, at)
}

// pace lets attempts start, or pauses them for as long as the rate requires: until
// Rate.Per has passed since the start that is Rate.Count starts back.
func (l *limits) pace(s *limitState) {
	l.unpause(s)
	rate := s.limit.Rate
	if rate.Count == 0 || len(s.starts) < rate.Count {
		return
	}
	due := s.starts[len(s.starts)-rate.Count].Add(rate.Per)
	if !due.After(l.clock.now()) {
		return
	}
	s.slots.Paused = true
	l.clock.countDown(&s.pause, due, func() { l.pace(s) })
}

func (l *limits) unpause(s *limitState) {
	if s.slots.Paused {
		s.slots.Paused = false
		l.clock.stopCountdown(&s.pause)
	}
}

// shift moves the starts along with the clock. No start is later than now, whatever
// the clock showed.
func (l *limits) shift(by time.Duration) {
	now := l.clock.now()
	for _, s := range l.byName {
		for i, at := range s.starts {
			s.starts[i] = earlier(at.Add(by), now)
		}
		l.pace(s)
	}
}

// recall counts the attempts of open runs that started before a restart.
func (l *limits) recall(open map[run.ID]*openRun) {
	for _, o := range open {
		if len(o.flow.LimitedBy) > 0 {
			l.recallStarts(o)
		}
	}
	for _, s := range l.byName {
		slices.SortFunc(s.starts, time.Time.Compare)
		if over := len(s.starts) - flows.MaxRateCount; over > 0 {
			s.starts = slices.Clone(s.starts[over:])
		}
		l.pace(s)
	}
}

func (l *limits) recallStarts(o *openRun) {
	limitedBy := map[string][]*flows.Limit{}
	for _, spec := range o.flow.AllTasks() {
		limitedBy[spec.Name] = spec.LimitedBy
	}
	now := l.clock.now()
	for _, t := range o.run.Tasks {
		if len(limitedBy[t.Task]) == 0 {
			continue
		}
		known := startsOf(t, now)
		for _, spec := range limitedBy[t.Task] {
			s := l.byName[spec.Name]
			s.starts = append(s.starts, known...)
		}
	}
}

// startsOf are the starts of a task's attempts, as far as they matter to a rate. Only
// the time of the first one is recorded: each later one counts as if it had started as
// late as possible.
func startsOf(t *run.TaskRun, now time.Time) []time.Time {
	if t.Attempts == 0 {
		return nil
	}
	latest := now
	if t.State.Done() {
		latest = earlier(t.FinishedAt, now)
	}
	starts := slices.Repeat([]time.Time{latest}, min(t.Attempts, flows.MaxRateCount))
	starts[0] = earlier(t.StartedAt, now)
	return starts
}

func earlier(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}
