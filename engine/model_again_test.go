package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/flowhost/flowhost/flows"
	"github.com/flowhost/flowhost/run"
)

// againPlan is how a run was asked to be made again.
type againPlan struct {
	run.RerunOptions
	since time.Time // the run was looked at then, or later
}

func (c *client) randomAgain() run.RerunOptions {
	how := run.RerunOptions{Recorded: chance(c.rng, 3), Downstream: chance(c.rng, 2)}
	switch c.rng.IntN(3) {
	case 0:
		how.Whole = true
	case 1:
		how.Task = c.someTask()
	}
	return how
}

// somePath leads to a task of a run within the run, or to one of its own; it is the
// given one when there is none.
func (c *client) somePath(e *Engine, id run.ID, task run.TaskRef) ([]run.TaskRef, run.TaskRef) {
	record, err := e.Get(context.Background(), id)
	if err != nil || len(record.Tasks) == 0 {
		return nil, task
	}
	var calls []run.TaskRecord
	for _, t := range record.Tasks {
		if t.Child != "" {
			calls = append(calls, t)
		}
	}
	if len(calls) == 0 || chance(c.rng, 4) {
		last := pick(c.rng, record.Tasks...)
		return nil, last.Ref()
	}
	call := pick(c.rng, calls...)
	path, last := c.somePath(e, call.Child, task)
	return append([]run.TaskRef{call.Ref()}, path...), last
}

// again makes a run again.
func (c *client) again() {
	e := c.present()
	if e == nil || len(c.own) == 0 {
		return
	}
	id, how := c.someRun(e), againPlan{c.randomAgain(), time.Now()}
	if how.Task.Task != "" && chance(c.rng, 2) {
		how.Within, how.Task = c.somePath(e, id, how.Task)
	}
	receipt, err := e.Retry(context.Background(), id, how.RerunOptions)
	c.mu.Lock()
	defer c.mu.Unlock()
	busy, refused := (*BusyError)(nil), (*run.RequestError)(nil)
	switch {
	case err == nil:
		c.runs = append(c.runs, receipt.Run)
		c.own = append(c.own, receipt.Run)
		c.remade[receipt.Run] = how
	case errors.Is(err, ErrStopped):
		c.perhaps[id] = append(c.perhaps[id], how)
	case errors.As(err, &refused) && (how.Task.Task != "" || refused.Code == run.RequestUnknownFlow): // the flow is another one by now
	case !errors.Is(err, ErrUnfinished) && !errors.Is(err, ErrSucceeded) && !errors.Is(err, ErrDraining) && !errors.As(err, &busy):
		c.t.Errorf("a retry of %s (%+v) is answered with %v", id, how, err)
	}
}

// ways are the ways in which a run may have been asked for.
func (w *world) ways(s *story) []*againPlan {
	if how, ok := w.remade[s.id]; ok {
		return []*againPlan{&how}
	}
	var ways []*againPlan
	if parent := s.submitted.Parent; parent != nil {
		for _, how := range w.ways(s.all[parent.Run]) {
			if how.Task.Task != "" {
				how = &againPlan{how.Inside(), how.since} // that it leads there was checked with its parent
			}
			ways = append(ways, how)
		}
		return ways
	}
	for _, how := range w.perhaps[s.submitted.RetryOf] {
		ways = append(ways, &how)
	}
	return ways
}

// checkAgain compares a run with what the language says in one of the ways in which
// it may have been asked for.
func (w *world) checkAgain(s *story) error {
	if s.submitted.RetryOf == "" {
		return s.check(s.plan)
	}
	s.old = s.all[s.submitted.RetryOf]
	var all []error
	for _, s.how = range w.ways(s) {
		err := s.check(s.plan)
		if err == nil {
			return nil
		}
		all = append(all, fmt.Errorf("made again with %+v: %w", *s.how, err))
	}
	if len(all) == 0 {
		return fmt.Errorf("nobody asked for a run of %s again", s.submitted.RetryOf)
	}
	return errors.Join(all...)
}

// named reports whether one task was asked for, of the run or within it.
func (s *story) named() bool { return s.how != nil && s.how.Task.Task != "" }

// asked reports whether a member is, or holds, the task that was asked for: it does
// not matter to it that another one has won.
func (s *story) asked(m memberPlan) bool {
	return s.named() && slices.ContainsFunc(m.leaves(), func(t *taskPlan) bool { return t.name == s.how.Target().Task })
}

// same reports whether the run has the flow of the one before.
func (s *story) same() bool { return s.old.submitted.Definition == s.submitted.Definition }

// checkTaken checks whether a task, but not yet its items, was taken over, if it was
// to be.
func (s *story) checkTaken(t *taskPlan, p *partPlan) error {
	got := s.task(t.name)
	switch {
	case s.old == nil || p.tasks[0].part != flows.PartMain || s.how.Whole:
		if got.Reused {
			return errors.New("it is taken over")
		}
	case s.named():
		return s.checkKept(t, p)
	case !got.Reused && s.same() && s.canTake(t) && s.settled(memberPlan{task: t}, p):
		return fmt.Errorf("it is %s and not taken over", got.State)
	case got.Reused && s.same():
		return s.undisturbed(t, p)
	}
	return nil
}

// checkKept checks that all but one task, and perhaps what comes after it, is as it
// was.
func (s *story) checkKept(t *taskPlan, p *partPlan) error {
	got, before := s.task(t.name), s.old.task(t.name)
	named := t.name == s.how.Target().Task
	switch {
	case named && s.how.Target().Key != "":
		if !got.Reused || got.Items == nil {
			return errors.New("its other items are not taken over")
		}
	case named || s.how.Downstream && p.after(t, p.task(s.how.Target().Task)):
		if got.Reused {
			return errors.New("it is taken over")
		}
	case !got.Reused:
		return errors.New("it is not taken over")
	case s.mayBeLeftOut(before) && got.State == run.Skipped && got.Failure != nil && got.Failure.Code == run.CodeLeftOut:
	case !s.hadEnded(before) || got.State != before.State:
		return fmt.Errorf("it is taken over as %s, and was %+v", got.State, before)
	case got.Items != nil && s.expandedAgain(t):
		return errors.New("it is taken over, and items of it run")
	}
	return nil
}

// hadEnded reports whether a task may have ended when its run was looked at.
func (s *story) hadEnded(before *run.TaskRun) bool {
	return before != nil && !before.FinishedAt.After(s.run.CreatedAt)
}

// mayBeLeftOut reports whether a task may not have ended then.
func (s *story) mayBeLeftOut(before *run.TaskRun) bool {
	return before == nil || !before.FinishedAt.Before(s.how.since)
}

// task is the plan of a task of the part, nil for none.
func (p *partPlan) task(name string) *taskPlan {
	for _, t := range p.tasks {
		if t.name == name {
			return t
		}
	}
	return nil
}

// after reports whether a task comes after another one.
func (p *partPlan) after(t, first *taskPlan) bool {
	return slices.ContainsFunc(p.before(t), func(up *taskPlan) bool { return up == first || p.after(up, first) })
}

// before are the tasks that one waits for by itself or with the groups around it.
func (p *partPlan) before(t *taskPlan) []*taskPlan {
	var all []*taskPlan
	for m := (memberPlan{task: t}); ; {
		for _, ref := range m.upstream() {
			all = append(all, p.find(ref).leaves()...)
		}
		g, place := m.within()
		if g == nil {
			return all
		}
		if g.ordered() {
			for _, other := range g.members[:place] {
				all = append(all, other.leaves()...)
			}
		}
		if g.mode != flows.GroupParallel {
			for _, other := range g.members {
				for _, ref := range refsOutside(p, g, other) {
					all = append(all, p.find(ref).leaves()...)
				}
			}
		}
		m = memberPlan{group: g}
	}
}

// refsOutside are the references of a member, and of what is in it, out of a group.
func refsOutside(p *partPlan, g *groupPlan, m memberPlan) []string {
	refs := slices.DeleteFunc(slices.Clone(m.upstream()), func(ref string) bool { return p.find(ref).inside(g) })
	if m.group != nil {
		for _, inner := range m.group.members {
			refs = append(refs, refsOutside(p, g, inner)...)
		}
	}
	return refs
}

// canTake reports whether a task, or an item of it, ended so that a run which
// continues takes it over.
func (s *story) canTake(t *taskPlan) bool {
	before := s.old.task(t.name)
	wired := before != nil && before.State == run.Skipped && before.Failure == nil // that skips it again
	return before != nil && !wired && (before.Items != nil || before.State == run.Succeeded)
}

// settled reports whether what has become of a member still counts in a run that
// continues: it and all before it ended so that nothing of it is run again.
func (s *story) settled(m memberPlan, p *partPlan) bool {
	if !s.settledBefore(m, p) {
		return false
	}
	if m.task != nil {
		return m.task.each != nil && s.old.task(m.task.name).Items != nil || s.counts(m, p)
	}
	one := m.group.mode == flows.GroupFirstSuccess || m.group.mode == flows.GroupRace
	for _, inner := range m.group.members {
		done := s.settled(inner, p) && (inner.task == nil || s.counts(inner, p))
		if one && done && s.old.end(p, inner).state == run.Succeeded {
			return true
		}
		if !one && !done {
			return false
		}
	}
	return !one
}

// counts reports whether a task ended so that nothing of it is run again.
func (s *story) counts(m memberPlan, p *partPlan) bool {
	e := s.old.end(p, m)
	return e.state == run.Succeeded || e.done && m.task.each == nil || e.state == run.Skipped && e.code == "" || e.state == run.Failed && s.won(m, p)
}

// won reports whether a success that is enough was had in a group around a member.
func (s *story) won(m memberPlan, p *partPlan) bool {
	for g, _ := m.within(); g != nil; g = g.parent {
		if g.mode == flows.GroupFirstSuccess && s.old.end(p, memberPlan{group: g}).state == run.Succeeded {
			return true
		}
	}
	return false
}

// settledBefore reports whether all is settled that a member waits for.
func (s *story) settledBefore(m memberPlan, p *partPlan) bool {
	for {
		g, place := m.within()
		refs := slices.Clone(m.upstream())
		if m.group != nil && m.group.mode != flows.GroupParallel {
			refs = refsOutside(p, m.group, m)
		}
		for _, ref := range refs {
			if up := p.find(ref); !s.settled(up, p) || up.task != nil && !s.counts(up, p) {
				return false
			}
		}
		if g == nil {
			return true
		}
		if g.mode == flows.GroupSerial && place > 0 {
			if up := g.members[place-1]; !s.settled(up, p) || up.task != nil && !s.counts(up, p) {
				return false
			}
		}
		m = memberPlan{group: g}
	}
}

// undisturbed checks that nothing is run again that a task which is taken over
// refers to.
func (s *story) undisturbed(t *taskPlan, p *partPlan) error {
	if t.each != nil && s.expandedAgain(t) {
		return nil // it continues
	}
	for _, ref := range t.upstream() {
		if p.find(ref).group != nil && s.old.end(p, p.find(ref)).state == run.Succeeded {
			continue // one success in it may be enough
		}
		for _, up := range p.find(ref).leaves() {
			if got := s.task(up.name); (s.began(got) || s.expandedAgain(up)) && !s.skippedElsewhere(up) {
				return fmt.Errorf("it is taken over, and %s is run again", up.name)
			}
		}
	}
	return nil
}

// skippedElsewhere reports whether the run before took over that a task was skipped
// from one of another version: whether this one skips it, too, is open.
func (s *story) skippedElsewhere(t *taskPlan) bool {
	for old := s.old; old != nil; old = old.old {
		switch got := old.task(t.name); {
		case got == nil || got.State != run.Skipped || got.Failure != nil:
			return false
		case !got.Reused:
			return old.submitted.Definition != s.submitted.Definition
		}
	}
	return false
}

// expandedAgain reports whether items of a task have begun in the run.
func (s *story) expandedAgain(t *taskPlan) bool {
	return slices.ContainsFunc(s.events, func(e run.Event) bool {
		ref, _, _, _ := taskEvent(e)
		return ref.Task == t.name && ref.Key != ""
	})
}

// checkReused compares a task that was taken over, or an item, with what it was.
func (s *story) checkReused(t *taskPlan, p *partPlan, got *run.TaskRun) error {
	before := s.old.run.Task(got.TaskRef)
	if s.named() && s.mayBeLeftOut(before) && got.State == run.Skipped && got.Output == nil {
		return nil
	}
	kept := before != nil && (before.State == run.Succeeded || s.named() && before.State.Done() || (before.State == run.Failed || before.State == run.Canceled && t.key != "") && s.keepsFailed(t, p))
	if !kept || before.State != got.State || s.same() && !sameJSON(s.blobs.whole(before.Output), s.blobs.whole(got.Output)) {
		return fmt.Errorf("it is taken over as %s, and in the run before it was %+v", got.State, before)
	}
	if s.began(got) {
		return fmt.Errorf("it is taken over and %s after %d attempts", got.State, got.Attempts)
	}
	return nil
}

// keepsFailed reports whether a task that failed is taken over as it was.
func (s *story) keepsFailed(t *taskPlan, p *partPlan) bool {
	return t.goesOn || t.key == "" && (!s.same() || s.won(memberPlan{task: t}, p))
}
