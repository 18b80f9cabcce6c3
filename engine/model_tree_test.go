package engine

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/flowhost/flowhost/flows"
	"github.com/flowhost/flowhost/run"
)

// end is how a task or a group has ended. That of a task is recorded, that of a
// group follows from those of its members.
type end struct {
	state  run.State
	code   string    // of the failure; empty for none
	raced  bool      // another member of a race was first
	done   bool      // failed, and counts as done
	at     time.Time // when it was clear that it had succeeded, or was over
	output any       // nil unless it has succeeded

	// What may be said to have failed first in it, when it has failed, and when
	// that was: ends at one time have no order.
	culprits map[string]run.Outcome
	failedAt time.Time
}

// skipped reports whether it counts as left out by the flow's wiring.
func (e end) skipped() bool { return e.raced || e.state == run.Skipped && e.code == "" }

// blocked reports whether it was left out because something else went wrong.
func (e end) blocked() bool { return e.state == run.Skipped && e.code != "" && !e.raced }

// canceled reports whether it was canceled, as far as a failure tells that names
// what failed first.
func (e end) canceled(f *run.Failure) bool {
	if f != nil && e.culprits[f.Task] != "" {
		return e.culprits[f.Task] == run.OutcomeCanceled
	}
	return e.state == run.Canceled
}

func (e end) well() bool { return e.state == run.Succeeded || e.done }

// failing reports whether it makes the group around it fail, or the run.
func (e end) failing() bool { return !e.well() && !e.skipped() && !e.blocked() }

func (s *story) end(p *partPlan, m memberPlan) end {
	if m.group != nil {
		return s.groupEnd(p, m.group)
	}
	t, got := m.task, s.task(m.task.name)
	e := end{state: got.State, at: got.FinishedAt, failedAt: got.FinishedAt, culprits: map[string]run.Outcome{t.name: got.Outcome}}
	e.done = t.goesOn && got.State == run.Failed
	if got.Failure != nil {
		e.code = got.Failure.Code
	}
	lost := got.State == run.Canceled && (e.code == run.CodeRace || got.Cancel != nil && got.Cancel.Code == run.CodeRace)
	if e.raced = lost; lost {
		e.at = e.at.Add(time.Nanosecond) // after the winner
	}
	switch {
	case t.wait != nil: // also one that was refused
		e.output = s.decoded(got.Output)
	case got.State != run.Succeeded:
	case got.Reused && got.Items == nil: // perhaps of another version
		e.output = s.decoded(got.Output)
	case t.each != nil:
		e.output = s.gathered(t)
	case t.call != nil:
		e.output = s.decoded(got.Output)
	default:
		e.output = t.name
	}
	return e
}

// groupEnd is the state of a group as its mode says it.
func (s *story) groupEnd(p *partPlan, g *groupPlan) end {
	if known, ok := s.groups[g]; ok {
		return known
	}
	e := s.sum(p, g)
	s.groups[g] = e
	return e
}

func (s *story) sum(p *partPlan, g *groupPlan) end {
	var all []end
	whole := end{state: run.Skipped}
	for _, m := range g.members {
		e := s.end(p, m)
		all = append(all, e)
		if e.at.After(whole.at) {
			whole.at = e.at
		}
	}
	whole.failedAt = whole.at
	if begin := s.begin(p, g); !begin.runs {
		whole.state, whole.code, whole.raced = begin.state, begin.code, s.leftBehind(g)
		whole.culprits = map[string]run.Outcome{"group." + g.name: run.OutcomeRejected}
		return whole
	}
	first := -1
	for i, e := range all {
		if e.state == run.Succeeded && (first < 0 || e.at.Before(all[first].at)) {
			first = i
		}
	}
	if (g.mode == flows.GroupFirstSuccess || g.mode == flows.GroupRace) && first >= 0 {
		whole.state, whole.at, whole.output = run.Succeeded, all[first].at, all[first].output
		return whole
	}
	outputs := map[string]any{}
	for i, e := range all {
		if e.well() {
			whole.state = run.Succeeded
		}
		outputs[g.members[i].name()] = e.output
	}
	for _, e := range all {
		if e.blocked() {
			whole.state, whole.code = run.Skipped, e.code
		}
	}
	if failed, bad := firstOf(all); bad {
		failed.at = whole.at
		return failed
	}
	if whole.state == run.Succeeded && (g.mode == flows.GroupParallel || g.mode == flows.GroupSerial) {
		whole.output = outputs
	}
	return whole
}

// firstOf is what failed first, with all the culprits of that time.
func firstOf(all []end) (first end, bad bool) {
	for _, e := range all {
		switch {
		case !e.failing() || bad && e.failedAt.After(first.failedAt):
		case bad && e.failedAt.Equal(first.failedAt):
			maps.Copy(first.culprits, e.culprits)
		default:
			first, bad = end{state: e.state, code: e.code, culprits: maps.Clone(e.culprits), failedAt: e.failedAt, at: e.at}, true
		}
	}
	return first, bad
}

// leftBehind reports whether a race was over before anything of a group had begun.
func (s *story) leftBehind(g *groupPlan) bool {
	lost := false
	for _, t := range (memberPlan{group: g}).leaves() {
		got := s.task(t.name)
		if s.began(got) {
			return false
		}
		lost = lost || got.State == run.Canceled && got.Failure.Code == run.CodeRace
	}
	return lost
}

// begin is what the language says of a group all of whose upstream is done.
func (s *story) begin(p *partPlan, g *groupPlan) wanted {
	if g.parent != nil {
		if turn := s.turn(p, memberPlan{group: g}); !turn.runs {
			return turn
		}
	}
	refs := append([]string{}, g.after...)
	if g.mode != flows.GroupParallel {
		for _, m := range g.members {
			refs = append(refs, needsOutside(p, g, m)...)
		}
	}
	if join := s.join(p, refs, s.before(p, memberPlan{group: g}), flows.RunOnSuccess); !join.runs {
		return join
	}
	return s.when(p, g.when, g.after)
}

// needsOutside is what decides about members from outside of their group.
func needsOutside(p *partPlan, g *groupPlan, m memberPlan) []string {
	var refs []string
	if m.group != nil || m.task.runOn == flows.RunOnSuccess {
		for _, ref := range m.upstream() {
			if !p.find(ref).inside(g) {
				refs = append(refs, ref)
			}
		}
	}
	if m.group != nil {
		for _, inner := range m.group.members {
			refs = append(refs, needsOutside(p, g, inner)...)
		}
	}
	return refs
}

// turn reports whether the group of a member lets it run, but for a race.
func (s *story) turn(p *partPlan, m memberPlan) wanted {
	g, place := m.within()
	if begin := s.begin(p, g); !begin.runs {
		if begin.state == run.Failed {
			return wanted{state: run.Skipped, code: run.CodeUpstream, because: "its group could not begin"}
		}
		return begin
	}
	if m.group != nil && s.tookPart(m.group) {
		return wanted{runs: true} // it has had its turn
	}
	for ; g != nil; m, g, place = (memberPlan{group: g}), g.parent, g.place {
		if g.mode != flows.GroupFirstSuccess || s.asked(m) {
			continue
		}
		for i, other := range g.members {
			taken := other.task != nil && s.task(other.task.name).Reused && s.task(other.task.name).Items == nil
			if (i < place || i > place && taken) && s.end(p, other).state == run.Succeeded {
				return wanted{state: run.Skipped, because: "another member has succeeded"}
			}
		}
	}
	return wanted{runs: true}
}

// tookPart reports whether what a task of a group did was taken over.
func (s *story) tookPart(g *groupPlan) bool {
	return slices.ContainsFunc((memberPlan{group: g}).leaves(), func(t *taskPlan) bool {
		got := s.task(t.name)
		return got.Reused && got.Items == nil && got.State != run.Skipped
	})
}

// before is the member that a member of a serial group comes after.
func (s *story) before(p *partPlan, m memberPlan) *end {
	g, place := m.within()
	if g == nil || g.mode != flows.GroupSerial || place == 0 {
		return nil
	}
	before := s.end(p, g.members[place-1])
	return &before
}

// join decides by the ends of what is upstream.
func (s *story) join(p *partPlan, refs []string, before *end, runOn flows.RunOn) wanted {
	bad, skipped := before != nil && !before.well() && !before.skipped(), 0
	for _, ref := range refs {
		switch up := s.end(p, p.find(ref)); {
		case up.skipped():
			skipped++
		case !up.well():
			bad = true
		}
	}
	switch {
	case runOn == flows.RunOnSuccess && bad:
		return wanted{state: run.Skipped, code: run.CodeUpstream, because: "something upstream did not succeed"}
	case runOn == flows.RunOnSuccess && len(refs) > 0 && skipped == len(refs):
		return wanted{state: run.Skipped, because: "all that is upstream was skipped"}
	case runOn == flows.RunOnFailure && !bad:
		return wanted{state: run.Skipped, because: "nothing upstream failed"}
	}
	return wanted{runs: true}
}

func (s *story) when(p *partPlan, w whenKind, after []string) wanted {
	switch {
	case w == whenBroken:
		return wanted{state: run.Failed, code: run.CodeExpression, because: "of its condition"}
	case w == whenNever, w == whenPayload && s.payload().N == 0,
		w == whenState && s.end(p, p.find(after[0])).state != run.Succeeded:
		return wanted{state: run.Skipped, because: "its condition is false"}
	}
	return wanted{runs: true}
}

// raceOver is the number of the event with which a race around a task was won by
// another member.
func (s *story) raceOver(p *partPlan, t *taskPlan) int {
	over := len(s.events)
	for m := (memberPlan{task: t}); ; {
		g, place := m.within()
		if g == nil {
			return over
		}
		if g.mode == flows.GroupRace && !s.asked(m) {
			for i, other := range g.members {
				if i != place && s.end(p, other).state == run.Succeeded {
					over = min(over, s.endsAt(other))
				}
			}
		}
		m = memberPlan{group: g}
	}
}

// raceStop is raceOver for what begins: a winner that was taken over as a whole may
// be known a moment after the run has started.
func (s *story) raceStop(p *partPlan, t *taskPlan) int {
	over := s.raceOver(p, t)
	for over < len(s.events)-1 && !s.events[over+1].At.After(s.run.StartedAt) {
		over++
	}
	return over
}

// endsAt is the number of the event with which a member was over.
func (s *story) endsAt(m memberPlan) int {
	last := 0
	for _, t := range m.leaves() {
		if at := s.endOf(t.ref()); at < len(s.events) || !s.task(t.name).Reused {
			last = max(last, at)
		}
	}
	return last
}

// checkGroups checks what holds for the tasks of each group together.
func (s *story) checkGroups(p *partPlan) error {
	for _, g := range p.groups {
		m := memberPlan{group: g}
		if err := s.checkSlots(g, m.leaves()); err != nil {
			return fmt.Errorf("group %s: %w", g.name, err)
		}
		if !g.ordered() {
			continue
		}
		for i := range g.members[1:] {
			if err := s.checkAfter(g.members[i], g.members[i+1]); err != nil {
				return fmt.Errorf("group %s: %w", g.name, err)
			}
		}
	}
	for _, m := range p.all() {
		for _, ref := range m.upstream() {
			if err := s.checkAfter(p.find(ref), m); err != nil {
				return err
			}
		}
	}
	return nil
}

// checkAfter checks that nothing of a member has begun before another one was over.
func (s *story) checkAfter(first, then memberPlan) error {
	over := s.endsAt(first)
	for _, t := range then.leaves() {
		for i, e := range s.events[:min(over, len(s.events))] {
			if ref, begins, _, _ := taskEvent(e); begins && ref.Task == t.name {
				return fmt.Errorf("%s begins with event %d, and %s was over with %d", t.name, i, first.ref(), over)
			}
		}
	}
	return nil
}

// checkSlots follows how many tasks and items of a group are under way.
func (s *story) checkSlots(g *groupPlan, leaves []*taskPlan) error {
	mine, under := map[string]bool{}, map[run.TaskRef]bool{}
	for _, t := range leaves {
		mine[t.name] = t.wait == nil
	}
	for i, e := range s.events {
		ref, begins, ends, _ := taskEvent(e)
		switch {
		case !mine[ref.Task]:
		case begins:
			under[ref] = true
		case ends:
			delete(under, ref)
		}
		if g.max > 0 && len(under) > g.max {
			return fmt.Errorf("with event %d %d are under way, and %d may be: %s", i, len(under), g.max, strings.Join(refNames(under), ", "))
		}
	}
	return nil
}

func refNames(refs map[run.TaskRef]bool) []string {
	var names []string
	for ref := range refs {
		names = append(names, ref.Label())
	}
	return names
}
