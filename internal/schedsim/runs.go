package schedsim

import (
	"slices"
	"time"

	"github.com/flowhost/flowhost/dag"
	"github.com/flowhost/flowhost/flows"
	"github.com/flowhost/flowhost/internal/fairq"
	"github.com/flowhost/flowhost/scheduler"
)

// openRun is a run that is not finished.
type openRun struct {
	*schedule
	number            int // among all runs
	nominal, accepted time.Time
	started           time.Time // the zero time while it waits
	key               string    // under its flow's limit
	held              int       // slots, of those that its limits ask for
	state             state
	frontier          *dag.Frontier // nil until the run starts
	done              []bool        // tasks that have ended, by node
	attempts          []*attempt    // under way
	followers         []task        // of later runs of the schedule, which wait for tasks of this one
	waited            bool
}

type state uint8

const (
	pending state = iota
	running
	ended
)

// task is one task of a run that may start, but for what it waits for.
type task struct {
	*openRun
	node  int
	since time.Time // it waits
}

// attempt is a task under way.
type attempt struct {
	task
	place fairq.Place
	timer scheduler.Timer
	gone  bool // ended, or cut off
}

// accept opens a run.
func (s *simulation) accept(sc *schedule, nominal time.Time, key string) {
	o := &openRun{schedule: sc, number: s.accepted, nominal: nominal, accepted: s.now(), key: key, done: make([]bool, sc.flow.Graph.Len())}
	sc.open = append(sc.open, o)
	s.accepted++
	s.open++
	s.most = max(s.most, s.open)
	s.enter(o)
}

// start lets a run go that has all its slots.
func (s *simulation) start(o *openRun) {
	o.waitedFor(s.now().Sub(o.accepted))
	o.started, o.state, o.frontier = s.now(), running, o.flow.Graph.Frontier()
	s.advance(o)
}

// waitedFor notes how long a run has waited for an earlier one, or for a slot.
func (o *openRun) waitedFor(d time.Duration) {
	if d <= 0 {
		return
	}
	if !o.waited {
		o.waited = true
		o.stats.Waited++
	}
	o.stats.MaxWait = max(o.stats.MaxWait, d)
}

// advance lets all tasks go whose upstream tasks have ended, and finishes the run
// when nothing is left.
func (s *simulation) advance(o *openRun) {
	for {
		nodes := o.frontier.Ready()
		if len(nodes) == 0 {
			break
		}
		for _, node := range nodes {
			if o.skipped[node] || o.passes(node) {
				s.settle(o, node)
			} else {
				s.ready(task{openRun: o, node: node, since: s.now()})
			}
		}
	}
	if o.frontier.Done() {
		s.finish(o)
	}
}

// ready lets a task start as soon as it is its turn.
func (s *simulation) ready(t task) {
	if earlier := t.ahead(); earlier != nil {
		earlier.followers = append(earlier.followers, t)
		return
	}
	t.waitedFor(s.now().Sub(t.since))
	t.since = s.now()
	s.workers.push(t)
}

// ahead is the earlier run that has yet to end a task before this one may start,
// nil when there is none.
func (t task) ahead() *openRun {
	if t.spec.Overlap != flows.OverlapNode {
		return nil
	}
	for _, earlier := range t.schedule.open {
		if earlier == t.openRun {
			break
		}
		if !earlier.done[t.node] {
			return earlier
		}
	}
	return nil
}

// begin starts a task that has a place.
func (s *simulation) begin(t task, place fairq.Place) {
	a := &attempt{task: t, place: place}
	t.openRun.attempts = append(t.openRun.attempts, a)
	s.workers.take(a, s.now())
	a.timer = s.at(s.now().Add(t.each), func() { s.attemptEnded(a) })
}

func (s *simulation) attemptEnded(a *attempt) {
	if a.gone {
		return
	}
	s.workers.give(a, s.now())
	o := a.openRun
	o.attempts = slices.DeleteFunc(o.attempts, func(other *attempt) bool { return other == a })
	s.settle(o, a.node)
	s.advance(o)
}

// settle ends a task, and lets those go that waited for it.
func (s *simulation) settle(o *openRun, node int) {
	o.done[node] = true
	if err := o.frontier.Complete(node); err != nil {
		s.stop(err)
	}
	var waiting []task
	o.followers = slices.DeleteFunc(o.followers, func(t task) bool {
		if t.node == node {
			waiting = append(waiting, t)
		}
		return t.node == node
	})
	for _, t := range waiting {
		s.ready(t)
	}
}

// finish closes a run.
func (s *simulation) finish(o *openRun) {
	if s.closed != nil {
		s.closed(o, s.now())
	}
	o.state = ended
	s.open--
	s.leave(o)
	o.schedule.forget(o)
	waiting := o.followers
	o.followers = nil
	for _, t := range waiting {
		s.ready(t)
	}
}

// forget takes a run out of those that are not finished. Mostly it is the first
// one, of very many perhaps.
func (sc *schedule) forget(o *openRun) {
	if sc.open[0] == o {
		sc.open[0] = nil
		sc.open = sc.open[1:]
		return
	}
	sc.open = slices.DeleteFunc(sc.open, func(other *openRun) bool { return other == o })
}

// cancel ends a run: guests heed it at once.
func (s *simulation) cancel(o *openRun) {
	s.workers.withdraw(o, s.now())
	for _, a := range o.attempts {
		s.cut(a)
	}
	o.attempts = nil
	s.finish(o)
}

// cut ends an attempt before its time.
func (s *simulation) cut(a *attempt) {
	s.queue.Cancel(a.timer)
	s.workers.give(a, s.now())
}

// dispatch starts what may start while workers are free.
func (s *simulation) dispatch() {
	if s.down {
		return
	}
	for len(s.starting) > 0 {
		o := s.starting[0]
		s.starting = s.starting[1:]
		if o.state == pending {
			s.enter(o)
		}
	}
	for {
		t, place, ok := s.workers.next()
		if !ok {
			break
		}
		s.begin(t, place)
	}
	s.workers.look(s.now())
}

// goDown stops everything. As after any start of a host, tasks continue in the order
// of their runs; those that were under way come behind all others. Nobody waits for a
// worker meanwhile.
func (s *simulation) goDown() {
	s.down = true
	for _, sc := range s.schedules {
		s.queue.Cancel(sc.timer)
	}
	s.interrupted = s.workers.drain(s.now())
	for _, a := range s.workers.underWay() {
		s.cut(a)
		a.openRun.attempts = nil
		s.interrupted = append(s.interrupted, a.task)
	}
}

// comeUp continues: first with the runs that were open, then with the schedules.
func (s *simulation) comeUp() {
	s.down = false
	for _, t := range s.interrupted {
		t.since = s.now()
		s.workers.push(t)
	}
	s.interrupted = nil
	s.dispatch()
	for _, sc := range s.schedules {
		s.wind(sc)
	}
}
