package engine

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/flowhost/flowhost/flows"
	"github.com/flowhost/flowhost/run"
)

// callPlan is the flow that a task runs, and what it gives it.
type callPlan struct {
	flow   string
	n      int
	k      string // empty for the default
	asText bool   // n is a text that is to be converted, and a wrong input one that cannot be
}

// place is where an event is in the journal.
type place struct {
	revision uint64
	index    int
}

func (p place) before(other place) bool {
	return p.revision < other.revision || p.revision == other.revision && p.index < other.index
}

// randomSubflow is a flow that tasks of others run: smaller, and with params.
func randomSubflow(rng *rand.Rand, name, module string) *flowPlan {
	f := randomFlow(rng, name, module, 1+rng.IntN(4))
	f.subflow, f.onLimit = true, pick(rng, flows.LimitQueue, flows.LimitSkip, flows.LimitCancelRunning)
	return f
}

// withParams gives a flow its values by params and not by the trigger.
func (f *flowPlan) withParams(hcl string) string {
	hcl = strings.NewReplacer("trigger.payload.n ", "param.n ", "trigger.payload.k\n", "param.k\n", "trigger.payload.items", "param.items").Replace(hcl)
	head, body, _ := strings.Cut(hcl, "\n")
	return head + `
  param "n" {
    type = number
  }
  param "k" {
    type    = string
    default = "a"
  }
  param "items" {}
  param "x" {}
` + body
}

// callSome makes tasks that run other flows of some that call functions.
func (f *flowPlan) callSome(rng *rand.Rand, others []*flowPlan) {
	for _, t := range f.all() {
		if len(others) == 0 || t.wait != nil || !chance(rng, 5) {
			continue
		}
		t.call = &callPlan{flow: pick(rng, others...).name, n: rng.IntN(3), k: pick(rng, "", "a", "b"), asText: chance(rng, 2)}
		t.timeout = pick(rng, 0, 0, time.Second, 20*time.Second)
	}
}

// input is the params of the flow: x is what a function would be given.
func (c *callPlan) input(kind inputKind, x string) string {
	n := fmt.Sprint(c.n)
	if c.asText {
		n = `"` + n + `"`
	}
	if kind == inputBroken && c.asText {
		n, x = "run.id", "null"
	}
	if c.k != "" {
		n += fmt.Sprintf(", k = %q", c.k)
	}
	return fmt.Sprintf("{ n = %s, items = range(%d), x = %s }", n, c.n, x)
}

// given are the input that is to be recorded, and the params that are made of it.
func (c *callPlan) given(x any) (input, params map[string]any) {
	items := []any{}
	for i := range c.n {
		items = append(items, float64(i))
	}
	input = map[string]any{"n": float64(c.n), "items": items, "x": x}
	params = map[string]any{"n": float64(c.n), "items": items, "x": x, "k": "a"}
	if c.asText {
		input["n"] = fmt.Sprint(c.n)
	}
	if c.k != "" {
		input["k"], params["k"] = c.k, c.k
	}
	return input, params
}

// given is what the run of a sub-flow has in the place of a payload.
func (s *story) given() (p payload) {
	for name, to := range map[string]any{"n": &p.N, "k": &p.K, "items": &p.Items} {
		if err := json.Unmarshal(s.blobs.whole(s.submitted.Params[name]), to); err != nil {
			panic(err)
		}
	}
	return p
}

// checkCalls follows the attempts of a task that runs a flow, or of an item.
func (s *story) checkCalls(t *taskPlan, p *partPlan, item any) error {
	stop := min(s.stopped(t), s.raceStop(p, t))
	made, over, ran := 0, false, false
	var child *story
	for i, e := range s.events {
		var err error
		switch d := e.Data.(type) {
		case *run.ChildStarted:
			if d.TaskRef != t.ref() {
				continue
			}
			made, child = made+1, s.all[d.Child]
			err = s.checkCall(t, d, child, s.places[i], made == 1, s.input(t, p, item))
			if err == nil {
				err = s.checkContinued(t, p, child, ran)
			}
			ran = true
		case *run.AttemptStarted:
			if d.TaskRef != t.ref() {
				continue
			}
			made, child = made+1, nil
		case *run.AttemptFinished:
			if d.TaskRef != t.ref() {
				continue
			}
			err = s.checkReturn(t, d, child, i, i > stop)
			if stop < i && child != nil {
				err = errors.Join(err, child.checkStoppedBy(s, stop))
			}
			over = d.RetryAt.IsZero()
			if over {
				stop = min(stop, i)
			}
		}
		if err != nil {
			return fmt.Errorf("attempt %d: %w", made, err)
		}
		if ref, begins, _, _ := taskEvent(e); begins && ref == t.ref() && i > stop {
			return fmt.Errorf("attempt %d starts after it was stopped", made)
		}
	}
	if made == 0 {
		return fmt.Errorf("it is %s without an attempt", s.run.Task(t.ref()).State)
	}
	return nil
}

// checkCall checks how an attempt began, and the run that it is.
func (s *story) checkCall(t *taskPlan, d *run.ChildStarted, child *story, at place, first bool, x any) error {
	if child == nil || child.places[0].revision != at.revision {
		return fmt.Errorf("its run %s did not begin with it", d.Child)
	}
	input, params := t.call.given(x)
	if first && !reflect.DeepEqual(s.decoded(d.Input), any(input)) || !first && d.Input != nil {
		return fmt.Errorf("its input is %.100v, want %.100v", s.decoded(d.Input), input)
	}
	got := map[string]any{}
	for name, value := range child.submitted.Params {
		got[name] = s.decoded(value)
	}
	if !reflect.DeepEqual(got, params) {
		return fmt.Errorf("its run is given %.200v, want %.200v", got, params)
	}
	c, depth := child.submitted, 1
	if s.submitted.Parent != nil {
		depth += s.submitted.Parent.Depth
	}
	want := run.Trigger{Kind: run.TriggerTask, Time: s.submitted.Trigger.Time}
	if c.Flow != t.call.flow || c.Definition != s.submitted.Definition || *c.Parent != (run.Parent{Run: s.id, TaskRef: t.ref(), Depth: depth}) || !reflect.DeepEqual(c.Trigger, want) {
		return fmt.Errorf("its run was asked for with %+v", c)
	}
	return nil
}

// checkContinued checks whether the run that is an attempt continues with an earlier
// one, if it is to: that of the same task in the run that this one continues, unless
// there was a run for the task already.
func (s *story) checkContinued(t *taskPlan, p *partPlan, child *story, ran bool) error {
	got := child.submitted.RetryOf
	if s.old == nil || s.how.Whole || ran || t.part != flows.PartMain {
		if got != "" {
			return fmt.Errorf("its run continues %s", got)
		}
		return nil
	}
	if s.named() {
		leads := len(s.how.Within) > 0 && s.how.Within[0] == t.ref()
		if leads != (got != "") || leads && !s.old.ran(t.ref(), got) {
			return fmt.Errorf("its run continues %q", got)
		}
		return nil
	}
	before := s.old.run.Task(t.ref())
	if before == nil || before.Child == "" || before.State == run.Succeeded {
		if got != "" {
			return fmt.Errorf("its run continues %s, and before it was %+v", got, before)
		}
		return nil
	}
	if !s.same() {
		return nil // what it was may count as something else now
	}
	old := s.all[before.Child]
	goesOn := s.settledBefore(memberPlan{task: p.task(t.name)}, p) && s.givenTheSame(old, child) && s.hasMore(old)
	if goesOn && got != old.id || !goesOn && got != "" {
		return fmt.Errorf("its run continues %q, and %s was before; it is to go on: %t", got, old.id, goesOn)
	}
	return nil
}

// ran reports whether an attempt of a task was the run.
func (s *story) ran(ref run.TaskRef, id run.ID) bool {
	return slices.ContainsFunc(s.events, func(e run.Event) bool {
		d, ok := e.Data.(*run.ChildStarted)
		return ok && d.TaskRef == ref && d.Child == id
	})
}

func (s *story) givenTheSame(a, b *story) bool {
	for name, value := range a.submitted.Params {
		if !reflect.DeepEqual(s.decoded(value), s.decoded(b.submitted.Params[name])) {
			return false
		}
	}
	return true
}

// hasMore reports whether there is something in a run that one which continues it
// takes over.
func (s *story) hasMore(old *story) bool {
	p := old.plan.part(flows.PartMain)
	next := &story{submitted: old.submitted, old: old, how: &againPlan{}, all: s.all}
	return slices.ContainsFunc(p.tasks, func(t *taskPlan) bool {
		before := old.task(t.name)
		switch {
		case before == nil || !next.settledBefore(memberPlan{task: t}, p):
			return false
		case before.Items != nil || next.counts(memberPlan{task: t}, p) && before.State != run.Skipped:
			return true
		}
		return before.State != run.Succeeded && before.Child != "" && s.hasMore(s.all[before.Child])
	})
}

// checkReturn checks how an attempt ended, which is as its run did, and whether
// another one follows. There is no run when the flow was at its limit.
func (s *story) checkReturn(t *taskPlan, d *run.AttemptFinished, child *story, i int, stopped bool) error {
	want, retryable := run.OutcomeRejected, true
	if child != nil {
		last := child.places[len(child.places)-1]
		if end := child.run; !end.State.Done() || last.revision != s.places[i].revision || !last.before(s.places[i]) || !bytes.Equal(s.blobs.whole(end.Output), s.blobs.whole(d.Output)) {
			return fmt.Errorf("it gives %.100s with revision %d, and its run was %s with %d and gives %.100s", d.Output, s.places[i].revision, end.State, last.revision, end.Output)
		}
		want, retryable = child.outcome()
	} else if d.Failure == nil || d.Failure.Code != run.CodeConcurrency && t.again != againBroken {
		return fmt.Errorf("it is %s (%v) without a run", d.Outcome, d.Failure)
	}
	left := want != run.OutcomeSucceeded && want != run.OutcomeCanceled && !stopped && d.Attempt < t.retry.Attempts
	again := left && t.attemptedAgain(want, d.Attempt, 0, retryable)
	if left && t.again == againBroken {
		want, again = run.OutcomeRejected, false
	}
	if d.Outcome != want || again == d.RetryAt.IsZero() {
		return fmt.Errorf("it is %s, and the next one is due at %v; want %s, another one: %t", d.Outcome, d.RetryAt, want, again)
	}
	at := s.events[i].At
	if wait := t.delay(want, d.Attempt); again && !d.RetryAt.Equal(at.Add(wait)) {
		return fmt.Errorf("the next one is due after %s, want %s", d.RetryAt.Sub(at), wait)
	}
	return nil
}

// outcome is what the end of a run is for the task that it belongs to, and whether
// it may be tried again.
func (s *story) outcome() (run.Outcome, bool) {
	f := s.run.Failure
	switch {
	case f == nil:
		return run.OutcomeSucceeded, false
	case f.Outcome == run.OutcomeLost:
		return run.OutcomeFailed, true
	case f.Outcome == run.OutcomeTimedOut:
		return f.Outcome, true
	}
	return f.Outcome, f.Retryable
}

// checkStoppedBy checks that a run was canceled when the one above it stopped the
// task with an event, as long as there was something to cancel.
func (s *story) checkStoppedBy(above *story, stop int) error {
	if stop >= len(above.events) || s.run.Cancel != nil {
		return nil
	}
	for i, e := range s.events {
		if ref, _, ends, _ := taskEvent(e); ends && s.plan.task(ref.Task).part == flows.PartMain && above.places[stop].before(s.places[i]) {
			return fmt.Errorf("run %s goes on with task %s, and it was stopped", s.id, ref.Label())
		}
	}
	return nil
}

// judgeChildren checks that each run of a sub-flow is an attempt of a task, and that
// there is a reason for each that was canceled.
func (w *world) judgeChildren(stories map[run.ID]*story) {
	calls := map[run.ID]int{}
	for _, s := range stories {
		for _, e := range s.events {
			if d, ok := e.Data.(*run.ChildStarted); ok {
				calls[d.Child]++
			}
		}
	}
	for id, s := range stories {
		parent := s.submitted.Parent
		if calls[id] != 0 && parent == nil || parent != nil && (calls[id] != 1 || stories[parent.Run] == nil) {
			w.t.Errorf("run %s of %+v is %d attempts", id, parent, calls[id])
		}
		if parent != nil && s.run.Cancel != nil {
			if err := s.checkCanceled(stories[parent.Run], w.asked[string(id)] > 0, w.replaces(s.plan.name)); err != nil {
				w.t.Errorf("run %s: %v\n%s", id, err, s)
			}
		}
	}
}

// replaces reports whether a version of a flow cancels running runs, also those of other
// versions, for new ones.
func (w *world) replaces(flow string) bool {
	return slices.ContainsFunc(w.plans, func(p *setPlan) bool {
		return slices.ContainsFunc(p.flows, func(f *flowPlan) bool {
			return f.name == flow && f.limit > 0 && f.onLimit == flows.LimitCancelRunning
		})
	})
}

// checkCanceled looks for the reason for which the run of a sub-flow was canceled.
func (s *story) checkCanceled(above *story, asked, replaced bool) error {
	why, at := s.run.Cancel, s.events[s.canceled].At
	ref := s.submitted.Parent.TaskRef
	t := above.plan.task(ref.Task)
	stop := above.stopped(t.item(ref.Key))
	switch {
	case stop < len(above.events) && above.places[stop].before(s.places[s.canceled]):
		return nil
	case why.Outcome == run.OutcomeTimedOut && t.timeout > 0 && !at.Before(s.run.CreatedAt.Add(t.timeout)):
		return nil
	case why.Outcome == run.OutcomeTimedOut && s.plan.timeout > 0 && !at.Before(s.run.StartedAt.Add(s.plan.timeout)):
		return nil
	case why.Outcome == run.OutcomeCanceled && asked:
		return nil
	case why.Outcome == run.OutcomeCanceled && replaced:
		return nil
	}
	return fmt.Errorf("it was canceled without a reason: %v", why)
}

// someRun is one that the client has asked for, or one within it.
func (c *client) someRun(e *Engine) run.ID {
	id := pick(c.rng, c.own...)
	for _, child := range childrenOf(e, id) {
		if chance(c.rng, 3) {
			return child
		}
	}
	return id
}

// childrenOf are the runs within a run that its tasks ran last.
func childrenOf(e *Engine, id run.ID) (all []run.ID) {
	record, err := e.Get(context.Background(), id)
	if err != nil {
		return nil
	}
	for _, t := range record.Tasks {
		if t.Child != "" {
			all = append(append(all, t.Child), childrenOf(e, t.Child)...)
		}
	}
	return all
}

// familiesAgree checks that a run of a sub-flow and its task belong to each other.
func (e *Engine) familiesAgree(o *openRun) error {
	if t, ok := e.exec.children.parentTask(o.run); o.run.Parent != nil && (!ok || t.state().Child != o.run.ID) {
		return fmt.Errorf("run %s is open, and its task %+v does not run it", o.run.ID, o.run.Parent)
	}
	for _, t := range o.run.Tasks {
		if t.State == run.Running && t.Child != "" && e.exec.open[t.Child] == nil {
			return fmt.Errorf("task %s of run %s goes on, and its run %s does not", t.Label(), o.run.ID, t.Child)
		}
	}
	if i := slices.IndexFunc(e.exec.children.starts, func(t task) bool { return e.exec.open[t.run.ID] != t.openRun || t.spec.Child == nil }); i >= 0 {
		return fmt.Errorf("task %s of run %s is to run a flow", e.exec.children.starts[i].ref().Label(), e.exec.children.starts[i].run.ID)
	}
	return nil
}
