package engine

import (
	"fmt"
	"slices"

	"github.com/flowhost/flowhost/flows"
	"github.com/flowhost/flowhost/run"
)

// The end of a run may start runs of other flows. They are accepted in the commit that
// ends it: none is lost, and none is made twice. They follow from accepted runs, so
// twice as many runs may be open for them as for requests: a run that replaces the one
// before it always finds room.

// chains starts runs at the ends of others.
type chains struct {
	exec   *executor
	byFlow map[string][]flows.Follower // by the flow that they start after; nil before flows are deployed
}

// chainedRoom is how many times Config.OpenRuns may be open before no run starts after
// another one.
const chainedRoom = 2

// run is a run that the end of another one starts.
type chainedRun struct {
	flow      *flows.Flow
	id        run.ID
	submitted *run.Submitted
}

// chainedAdmission is what a flow makes of the end of a run.
type chainedAdmission struct {
	flows.Follower
	admission *flows.Admission
	err       error
}

// admit lets the flows that follow on the end of a run admit it. The runs of
// sub-flows belong to the run above them and start nothing.
func (cs *chains) admit(r *run.Run, end *run.Finished, then func([]*chainedAdmission)) {
	var all []*chainedAdmission
	if r.Parent == nil {
		for _, next := range cs.followers(r) {
			if slices.Contains(next.Trigger.On, end.State) {
				all = append(all, &chainedAdmission{Follower: next})
			}
		}
	}
	if len(all) == 0 {
		then(nil)
		return
	}
	try := func(units int) bool {
		for _, c := range all {
			if !c.try(r, end, units) {
				return false
			}
		}
		return true
	}
	if o := cs.exec.open[r.ID]; o != nil {
		cs.exec.evaluations.evaluate(o, try, func() { then(all) }, nil)
		return
	}
	try(0)
	then(all)
}

// try lets the flow admit the end of a run, as [evaluations.try] does.
func (c *chainedAdmission) try(r *run.Run, end *run.Finished, units int) (enough bool) {
	payload, err := flows.Ended(r, end)
	if err == nil {
		err = fits(payload)
	}
	if c.err = err; err != nil {
		return true
	}
	c.admission, enough, c.err = c.Flow.TryAdmit(units, run.Request{Flow: c.Flow.Name, Trigger: run.Trigger{
		Kind: run.TriggerFlow, Name: c.Trigger.Name, Time: r.Trigger.Time, Headers: r.Trigger.Onward(), Payload: payload,
	}})
	return enough
}

// runs are the runs that the end of a run starts.
func (cs *chains) runs(r *run.Run, admitted []*chainedAdmission) []chainedRun {
	var all []chainedRun
	for _, c := range admitted {
		if f, ok := cs.run(r, c); ok {
			all = append(all, f)
		}
	}
	return all
}

// followers are the flows that may start after a run: the deployed ones or, before
// anything is deployed, those of the run's own definition.
func (cs *chains) followers(r *run.Run) []flows.Follower {
	if cs.byFlow != nil {
		return cs.byFlow[r.Flow]
	}
	if set := cs.exec.sets[r.Definition]; set != nil {
		return set.Followers()[r.Flow]
	}
	return nil // the run was abandoned
}

func (cs *chains) run(r *run.Run, c *chainedAdmission) (chainedRun, bool) {
	f, admission := c.Flow, c.admission
	refused := func(err error) (chainedRun, bool) {
		cs.exec.log.Error("a flow could not start after a run", "flow", f.Name, "trigger", c.Trigger.Name, "run", r.ID, "error", err)
		return chainedRun{}, false
	}
	switch {
	case c.err != nil:
		return refused(c.err)
	case !admission.Accepted:
		return chainedRun{}, false
	case len(cs.exec.open) >= chainedRoom*cs.exec.config.OpenRuns:
		return refused(fmt.Errorf("%d runs are open, %d times the limit for requests: flows that start several others when they end multiply, so give their triggers filters", len(cs.exec.open), chainedRoom))
	case cs.skipped(f, admission.Concurrency, r):
		cs.exec.log.Info("a flow is not started after a run: it is at its limit", "flow", f.Name, "trigger", c.Trigger.Name, "run", r.ID)
		return chainedRun{}, false
	}
	if err := cs.exec.define(f.DefinitionDigest, f.Definition); err != nil {
		return refused(err)
	}
	return chainedRun{flow: f, id: cs.exec.newID(cs.exec.clock.now()), submitted: &run.Submitted{
		Flow: f.Name, Definition: f.DefinitionDigest, Trigger: admission.Trigger,
		Params: admission.Params, Concurrency: admission.Concurrency,
	}}, true
}

// skipped reports whether a flow's limit skips a run that starts when another one has
// ended, whose slot is free then.
func (cs *chains) skipped(f *flows.Flow, key string, ended *run.Run) bool {
	if f.Concurrency == nil || f.Concurrency.OnLimit != flows.LimitSkip {
		return false
	}
	g := cs.exec.runLimits.byKey[runLimitKey{flow: f.Name, key: key}]
	if g == nil {
		return false
	}
	started := g.started
	if ended.Flow == f.Name && ended.Concurrency == key {
		started--
	}
	return started >= f.Concurrency.Limit
}

// start opens the runs that were accepted with the end of another one. They
// start with the next turn of the loop, as their ends may start others.
func (cs *chains) start(all []chainedRun) {
	for _, next := range all {
		if cs.exec.fault != nil {
			return
		}
		cs.exec.used[next.flow.DefinitionDigest] = cs.exec.clock.now()
		cs.exec.overLimit(next.flow, false, next.submitted.Concurrency) // cancels the runs that it replaces
		cs.exec.starting = append(cs.exec.starting, cs.exec.newOpenRun(cs.exec.shard.Runs[next.id], next.flow))
	}
}
