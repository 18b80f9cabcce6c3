package engine

import (
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/flowhost/flowhost/internal/fairq"
	"github.com/flowhost/flowhost/run"
)

// limitSome bounds how many attempts of some tasks are under way at once.
func (p *setPlan) limitSome(rng *rand.Rand) {
	p.limits = map[string]int{}
	for _, name := range []string{"one", "other"}[:rng.IntN(3)] {
		p.limits[name] = 1 + rng.IntN(2)
	}
	for _, f := range p.flows {
		for _, t := range f.all() {
			for _, name := range sortedKeys(p.limits) {
				if t.wait == nil && t.call == nil && chance(rng, 4) {
					t.limits = append(t.limits, "limit."+name)
				}
			}
		}
	}
}

// judgeLimits follows how many attempts were under way at once of all tasks that
// share a limit. The numbers of either version may hold.
func (w *world) judgeLimits() {
	bound := map[string]int{}
	for _, p := range w.plans {
		for name, n := range p.limits {
			bound["limit."+name] = max(bound["limit."+name], n)
		}
	}
	under := map[string]map[string]bool{}
	shard := run.NewShard()
	for revision := range w.ledger.last() {
		for _, e := range w.ledger.at(revision + 1) {
			shard.Apply(e)
			ref, begins := run.TaskRef{}, false
			switch d := e.Data.(type) {
			case *run.AttemptStarted:
				ref, begins = d.TaskRef, true
			case *run.AttemptFinished:
				ref = d.TaskRef
			default:
				continue
			}
			for _, name := range w.limitsOf(shard.Runs[e.Run], ref) {
				label := string(e.Run) + " " + ref.Label()
				if under[name] == nil {
					under[name] = map[string]bool{}
				}
				delete(under[name], label)
				if begins {
					under[name][label] = true
				}
				if len(under[name]) > bound[name] {
					w.t.Errorf("revision %d: %d attempts of %s are under way at once, and %d may be: %v", revision+1, len(under[name]), name, bound[name], sortedKeys(under[name]))
				}
			}
		}
	}
}

// limitsOf are the limits of a task in the version of its run.
func (w *world) limitsOf(r *run.Run, ref run.TaskRef) []string {
	for _, p := range w.plans {
		if f := p.set.Flow(r.Flow); f != nil && f.DefinitionDigest == r.Definition {
			return p.flow(r.Flow).task(ref.Task).limits
		}
	}
	return nil
}

// limitsAgree compares the slots of limits that are taken with the attempts that are
// under way.
func (e *Engine) limitsAgree() error {
	held := map[*fairq.Limit]int{}
	for _, o := range e.exec.open {
		for _, a := range o.attempts {
			for _, slots := range e.exec.limits.of(a.task) {
				held[slots]++
			}
		}
		admitted := slices.Clone(o.ending)
		for _, b := range o.beginning {
			admitted = append(admitted, b.task)
		}
		for _, t := range admitted {
			for _, slots := range e.exec.limits.of(t) {
				held[slots]++
			}
		}
	}
	for name, s := range e.exec.limits.byName {
		if s.slots.Running() != held[&s.slots] || s.slots.Waiting() < 0 || s.runs < 0 {
			return fmt.Errorf("limit %s: %d slots are taken of %d attempts, %d tasks wait, %d runs are open", name, s.slots.Running(), held[&s.slots], s.slots.Waiting(), s.runs)
		}
	}
	return nil
}
