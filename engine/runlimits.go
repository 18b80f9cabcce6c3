package engine

import (
	"cmp"
	"slices"

	"github.com/flowhost/flowhost/flows"
	"github.com/flowhost/flowhost/run"
)

// runLimitKey names a limit on concurrent runs: of a flow, per value of its key, or of
// a schedule.
type runLimitKey struct {
	flow, key, schedule string
}

// runLimit is how many runs may hold a slot of a run limiter at once.
type runLimit struct {
	key runLimitKey
	max int
}

// runLimiter counts the runs that hold a slot and keeps those that wait, in order.
type runLimiter struct {
	started   int
	waiting   []run.ID // the runs of backfills come behind all others
	backfills int      // how many runs of backfills are at the end of waiting
}

// runLimits are the run limiters in use. They are rebuilt from the states of the runs
// at start, so a slot cannot leak.
type runLimits struct {
	byKey map[runLimitKey]*runLimiter
	open  map[run.ID]*openRun // of the engine
	start func(*openRun)      // called with a run that has got a slot
}

// runLimits are the limits that a run has to pass, in this order: its schedule, where
// it waits for another run, then its flow's concurrency.
func (o *openRun) runLimits() []runLimit {
	var limits []runLimit
	switch o.overlap {
	case flows.OverlapSkip, flows.OverlapQueueOne, flows.OverlapQueue, flows.OverlapCancelRunning:
		limits = append(limits, runLimit{runLimitKey{flow: o.run.Flow, schedule: o.run.Trigger.Name}, 1})
	}
	if c := o.flow.Concurrency; c != nil {
		limits = append(limits, runLimit{runLimitKey{flow: o.run.Flow, key: o.run.Concurrency}, c.Limit})
	}
	return limits
}

// overLimit applies a flow's on_limit to a run for which the flow has no slot, and
// reports whether the run is to be skipped. The runs of backfills always wait.
func (e *executor) overLimit(f *flows.Flow, filled bool, key string) bool {
	c := f.Concurrency
	if c == nil || c.OnLimit == flows.LimitQueue || filled {
		return false
	}
	g := e.runLimits.byKey[runLimitKey{flow: f.Name, key: key}]
	if g == nil || g.started < c.Limit {
		return false
	}
	if c.OnLimit == flows.LimitSkip {
		return true
	}
	for _, o := range e.runLimits.sharing(f.Name, key) {
		e.cancel(o, canceled("another run was submitted, and the flow's on_limit is "+string(flows.LimitCancelRunning)))
	}
	return false
}

// sharing gives the open runs of a flow that share a limit, the oldest first.
func (rl *runLimits) sharing(flow, key string) []*openRun {
	var all []*openRun
	for _, o := range rl.open {
		if o.run.Flow == flow && o.run.Concurrency == key && o.run.Cancel == nil && !o.backfill {
			all = append(all, o)
		}
	}
	slices.SortFunc(all, func(a, b *openRun) int { return cmp.Compare(a.run.ID, b.run.ID) })
	return all
}

// hold gives all its slots to a run that started before a restart.
func (rl *runLimits) hold(o *openRun) {
	for _, l := range o.runLimits() {
		rl.limiter(l.key).started++
		o.held++
	}
}

// release frees the slots of a finished run and starts the next runs.
func (rl *runLimits) release(o *openRun) {
	for i, l := range o.runLimits() {
		g := rl.limiter(l.key)
		if i < o.held {
			g.started--
		}
		rl.admitWaiting(g)
		if g.started == 0 && len(g.waiting) == 0 {
			delete(rl.byKey, l.key)
		}
	}
}

// admitWaiting gives free slots to the runs that wait for them.
func (rl *runLimits) admitWaiting(g *runLimiter) {
	for len(g.waiting) > 0 {
		next := rl.open[g.waiting[0]]
		if next != nil && g.started >= next.runLimits()[next.held].max {
			return
		}
		g.pop()
		if next != nil {
			g.started++
			next.held++
			rl.start(next)
		}
	}
}

// ahead is how many waiting runs come before this one. Runs may wait while a slot is
// free: another version of the flow may have fewer slots.
func (g *runLimiter) ahead(o *openRun) int {
	if o.backfill {
		return len(g.waiting)
	}
	return len(g.waiting) - g.backfills
}

func (g *runLimiter) enqueue(o *openRun) {
	g.waiting = slices.Insert(g.waiting, g.ahead(o), o.run.ID)
	if o.backfill {
		g.backfills++
	}
}

func (g *runLimiter) pop() {
	g.waiting = g.waiting[1:]
	g.backfills = min(g.backfills, len(g.waiting))
}

func (rl *runLimits) limiter(key runLimitKey) *runLimiter {
	g := rl.byKey[key]
	if g == nil {
		g = new(runLimiter)
		rl.byKey[key] = g
	}
	return g
}
