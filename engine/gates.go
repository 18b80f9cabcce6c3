package engine

import "github.com/flowhost/flowhost/run"

// gateKey names a limit on runs at once: a flow's, per value of its key.
type gateKey struct {
	flow, key string
}

// gate counts the runs that hold a slot and keeps those that wait, in order. It
// is rebuilt from the runs' states at start, so a slot cannot leak.
type gate struct {
	started int
	waiting []run.ID
}

// enter starts a run, or lets it wait for a slot under its flow's concurrency
// limit.
func (e *Engine) enter(o *openRun) {
	if o.flow.Concurrency == nil {
		e.start(o)
		return
	}
	g := e.gate(o)
	if g.started >= o.flow.Concurrency.Limit {
		g.waiting = append(g.waiting, o.run.ID)
		return
	}
	g.started++
	o.slot = true
	e.start(o)
}

// leave gives up the slot of a finished run, if it had one, and lets the next
// ones start.
func (e *Engine) leave(o *openRun) {
	if o.flow.Concurrency == nil {
		return
	}
	g, key := e.gate(o), o.gateKey()
	if o.slot {
		g.started--
	}
	for len(g.waiting) > 0 {
		next := e.open[g.waiting[0]]
		if next != nil && g.started >= next.flow.Concurrency.Limit {
			break
		}
		g.waiting = g.waiting[1:]
		if next != nil {
			g.started++
			next.slot = true
			e.starting = append(e.starting, next)
		}
	}
	if g.started == 0 && len(g.waiting) == 0 {
		delete(e.gates, key)
	}
}

func (o *openRun) gateKey() gateKey { return gateKey{o.run.Flow, o.run.Concurrency} }

func (e *Engine) gate(o *openRun) *gate {
	g := e.gates[o.gateKey()]
	if g == nil {
		g = new(gate)
		e.gates[o.gateKey()] = g
	}
	return g
}
