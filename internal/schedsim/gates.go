package schedsim

import (
	"slices"

	"github.com/flowhost/flowhost/flows"
)

// gateKey names a limit on runs at once: a flow's, per value of its key, or a
// schedule's.
type gateKey struct {
	flow, key, schedule string
}

// limit is how many runs may hold a slot of a gate at once.
type limit struct {
	gate  gateKey
	slots int
}

// gate counts the runs that hold a slot and keeps those that wait, in order.
type gate struct {
	started int
	waiting []*openRun
}

// limits are the limits that a run has to pass, in this order.
func (o *openRun) limits() []limit {
	var limits []limit
	switch o.spec.Overlap {
	case flows.OverlapSkip, flows.OverlapQueueOne, flows.OverlapQueue, flows.OverlapCancelRunning:
		limits = append(limits, limit{gateKey{flow: o.flow.Name, schedule: o.spec.Name}, 1})
	}
	if c := o.flow.Concurrency; c != nil {
		limits = append(limits, limit{gateKey{flow: o.flow.Name, key: o.key}, c.Limit})
	}
	return limits
}

// enter starts a run, or lets it wait for the next slot that it needs.
func (s *simulation) enter(o *openRun) {
	limits := o.limits()
	for o.held < len(limits) {
		l := limits[o.held]
		g := s.gate(l.gate)
		if g.started >= l.slots {
			g.waiting = append(g.waiting, o)
			return
		}
		g.started++
		o.held++
	}
	s.start(o)
}

// limited applies a flow's policy for a run without a slot, and reports
// whether the run is to be left out.
func (s *simulation) limited(f *flows.Flow, key string) bool {
	c := f.Concurrency
	if c == nil || c.OnLimit == flows.LimitQueue {
		return false
	}
	g := s.gates[gateKey{flow: f.Name, key: key}]
	if g == nil || g.started < c.Limit {
		return false
	}
	if c.OnLimit == flows.LimitSkip {
		return true
	}
	for _, sc := range s.schedules {
		if sc.flow != f {
			continue
		}
		for _, o := range slices.Clone(sc.open) {
			if o.key == key {
				sc.stats.Canceled++
				s.cancel(o)
			}
		}
	}
	return false
}

// leave gives up the slots of a finished run and lets the next ones continue.
func (s *simulation) leave(o *openRun) {
	for i, l := range o.limits() {
		g := s.gate(l.gate)
		if i < o.held {
			g.started--
		}
		s.admitWaiting(g, l.slots)
		if g.started == 0 && len(g.waiting) == 0 {
			delete(s.gates, l.gate)
		}
	}
}

// admitWaiting gives the slots that are free to those that wait for them.
func (s *simulation) admitWaiting(g *gate, slots int) {
	for len(g.waiting) > 0 && (g.started < slots || g.waiting[0].state == ended) {
		next := g.waiting[0]
		g.waiting = g.waiting[1:]
		if next.state == pending {
			g.started++
			next.held++
			s.starting = append(s.starting, next)
		}
	}
}

func (s *simulation) gate(key gateKey) *gate {
	g := s.gates[key]
	if g == nil {
		g = new(gate)
		s.gates[key] = g
	}
	return g
}
