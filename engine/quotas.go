package engine

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/flowhost/flowhost/flows"
	"github.com/flowhost/flowhost/run"
)

// quota is a limit block as it stands. Its slots are held by attempts that are
// under way and by nothing else: what is in progress tells how many are taken, so
// none can be lost.
type quota struct {
	limit    *flows.Limit // the numbers that hold
	deployed bool
	runs     int // open ones whose flows refer to it
	waiting  int // tasks that are ready and have it
	held     int // slots

	starts  []time.Time // of attempts, in order: the last ones, as many as the rate counts
	resting bool        // the rate lets no attempt start before the countdown ends
	rest    countdown
}

// haveRoom reports whether an attempt may start that takes a slot of each.
func haveRoom(quotas []*quota) bool {
	for _, q := range quotas {
		if q.resting || q.limit.Concurrency > 0 && q.held >= q.limit.Concurrency {
			return false
		}
	}
	return true
}

// quotasOf are the limits of a task, sorted by name. They are known as long as its
// run is open.
func (e *Engine) quotasOf(t task) []*quota {
	if len(t.spec.LimitedBy) == 0 {
		return nil
	}
	quotas := make([]*quota, len(t.spec.LimitedBy))
	for i, l := range t.spec.LimitedBy {
		quotas[i] = e.quotas[l.Name]
	}
	return quotas
}

// Limits tells how limits stand, by name: those that are deployed, and those that
// open runs began with.
func (e *Engine) Limits(ctx context.Context) ([]run.LimitStatus, error) {
	var all []run.LimitStatus
	err := e.command(ctx, func() {
		for _, q := range e.quotas {
			all = append(all, q.status())
		}
	})
	slices.SortFunc(all, func(a, b run.LimitStatus) int { return cmp.Compare(a.Limit, b.Limit) })
	return all, err
}

func (q *quota) status() run.LimitStatus {
	s := run.LimitStatus{Limit: q.limit.Name, Concurrency: q.limit.Concurrency, InUse: q.held, Waiting: q.waiting}
	if q.limit.Rate.Count > 0 {
		s.Rate = q.limit.Rate.String()
	}
	if q.resting {
		s.Next = q.rest.due.UTC()
	}
	return s
}

// deployLimits makes the numbers of limits those that hold from now on, for what
// has been deployed before as well. Those that are declared no more keep theirs as
// long as runs refer to them.
func (e *Engine) deployLimits(limits []*flows.Limit) {
	for _, q := range e.quotas {
		q.deployed = false
	}
	for _, l := range limits {
		q := e.quota(l)
		q.limit, q.deployed = l, true
		e.pace(q)
	}
	for _, q := range e.quotas {
		e.forgetQuota(q)
	}
}

func (e *Engine) quota(l *flows.Limit) *quota {
	q := e.quotas[l.Name]
	if q == nil {
		q = &quota{limit: l}
		e.quotas[l.Name] = q
	}
	return q
}

// refer takes note of a run that is open. The numbers of its definition hold while
// none are deployed, which is before the first deployment after a restart.
func (e *Engine) refer(o *openRun) {
	for _, l := range o.flow.LimitedBy {
		q := e.quota(l)
		q.runs++
		if !q.deployed {
			q.limit = l
		}
	}
}

// unrefer takes note of the end of a run.
func (e *Engine) unrefer(o *openRun) {
	for _, l := range o.flow.LimitedBy {
		q := e.quotas[l.Name]
		q.runs--
		e.forgetQuota(q)
	}
}

func (e *Engine) forgetQuota(q *quota) {
	if !q.deployed && q.runs == 0 {
		e.wake(q)
		delete(e.quotas, q.limit.Name)
	}
}

// countStart takes note of an attempt that starts now.
func (e *Engine) countStart(quotas []*quota) {
	for _, q := range quotas {
		if q.limit.Rate.Count > 0 {
			q.started(e.now())
			e.pace(q)
		}
	}
}

// started adds a start. A clock that was set back is known a little later: until
// then starts are told apart by their order only.
func (q *quota) started(at time.Time) {
	if n := len(q.starts); n > 0 && at.Before(q.starts[n-1]) {
		at = q.starts[n-1]
	}
	if n, count := len(q.starts), q.limit.Rate.Count; n >= 2*count {
		q.starts = append(q.starts[:0], q.starts[n-count+1:]...)
	}
	q.starts = append(q.starts, at)
}

// pace lets attempts start, or wait as long as the rate says: the start before
// which the rate counts as many as it allows has to be long enough ago.
func (e *Engine) pace(q *quota) {
	e.wake(q)
	rate := q.limit.Rate
	if rate.Count == 0 || len(q.starts) < rate.Count {
		return
	}
	due := q.starts[len(q.starts)-rate.Count].Add(rate.Per)
	if !due.After(e.now()) {
		return
	}
	q.resting = true
	e.countDown(&q.rest, due, func() { e.pace(q) })
}

func (e *Engine) wake(q *quota) {
	if q.resting {
		q.resting = false
		e.stopCountdown(&q.rest)
	}
}

// shiftStarts moves the starts along with the clock. No start was later than now,
// whatever the clock showed.
func (e *Engine) shiftStarts(by time.Duration) {
	now := e.now()
	for _, q := range e.quotas {
		for i, at := range q.starts {
			q.starts[i] = earlier(at.Add(by), now)
		}
		e.pace(q)
	}
}

// recallStarts counts the attempts of open runs that started before a restart.
func (e *Engine) recallStarts() {
	for _, o := range e.open {
		if len(o.flow.LimitedBy) > 0 {
			e.recallStartsOf(o)
		}
	}
	for _, q := range e.quotas {
		slices.SortFunc(q.starts, time.Time.Compare)
		if over := len(q.starts) - flows.MaxRateCount; over > 0 {
			q.starts = slices.Clone(q.starts[over:])
		}
		e.pace(q)
	}
}

func (e *Engine) recallStartsOf(o *openRun) {
	limits := map[string][]*flows.Limit{}
	for _, spec := range o.flow.AllTasks() {
		limits[spec.Name] = spec.LimitedBy
	}
	now := e.now()
	for _, t := range o.run.Tasks {
		if len(limits[t.Task]) == 0 {
			continue
		}
		known := startsOf(t, now)
		for _, l := range limits[t.Task] {
			q := e.quotas[l.Name]
			q.starts = append(q.starts, known...)
		}
	}
}

// startsOf are the starts of a task's attempts, as far as they matter to a rate.
// Only the time of the first is recorded: each further one counts as if it had
// started as late as it can have.
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
