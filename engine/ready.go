package engine

import (
	"cmp"
	"slices"
)

// readyQueue holds the tasks that may start as soon as a worker is free: those
// of higher priority first, the flows of one priority in turn, the tasks of one
// flow in the order in which they became ready. So a flow of very many tasks
// makes no other one wait for more than its turn.
type readyQueue struct {
	size   int
	levels []*level         // by descending priority; those in use
	lanes  map[string]*lane // by flow; those with waiting or running tasks
}

// lane is what a flow has running, over all priorities.
type lane struct {
	flow             string
	running, waiting int
}

type level struct {
	priority int
	queues   []*queue // those with tasks
	next     int      // whose turn it is
}

// queue is the waiting tasks of one flow and priority.
type queue struct {
	lane  *lane
	tasks []task
	head  int // how many of tasks are gone
}

func (r *readyQueue) push(t task) {
	l := r.lane(t.run.Flow)
	l.waiting++
	r.size++
	level := r.level(t.priority())
	for _, q := range level.queues {
		if q.lane == l {
			q.tasks = append(q.tasks, t)
			return
		}
	}
	level.queues = slices.Insert(level.queues, level.next, &queue{lane: l, tasks: []task{t}})
	level.next++ // its turn is after that of all others
}

// pop takes out the task whose turn it is among the flows that have less than
// share running, and counts it as running.
func (r *readyQueue) pop(share int) (task, bool) {
	for _, l := range r.levels {
		for range l.queues {
			if l.next >= len(l.queues) {
				l.next = 0
			}
			q := l.queues[l.next]
			if q.lane.running >= share {
				l.next++
				continue
			}
			return r.take(l, q), true
		}
	}
	return task{}, false
}

func (r *readyQueue) take(l *level, q *queue) task {
	t := q.tasks[q.head]
	q.tasks[q.head] = task{}
	q.head++
	q.lane.waiting--
	q.lane.running++
	r.size--
	switch {
	case q.head == len(q.tasks):
		r.drop(l, l.next)
	case q.head > len(q.tasks)/2 && q.head > 1024:
		q.tasks = append([]task(nil), q.tasks[q.head:]...)
		q.head = 0
		l.next++
	default:
		l.next++
	}
	return t
}

// drop forgets a queue that is empty.
func (r *readyQueue) drop(l *level, i int) {
	l.queues = slices.Delete(l.queues, i, i+1)
	if i < l.next {
		l.next--
	}
	if len(l.queues) == 0 {
		r.levels = slices.DeleteFunc(r.levels, func(other *level) bool { return other == l })
	}
}

// done says that a task of the flow, taken out before, runs no more.
func (r *readyQueue) done(flow string) {
	l := r.lanes[flow]
	l.running--
	r.forget(l)
}

// withdraw takes out the tasks that match.
func (r *readyQueue) withdraw(match func(task) bool) []task {
	var out []task
	for _, l := range slices.Clone(r.levels) {
		for i := len(l.queues) - 1; i >= 0; i-- {
			q := l.queues[i]
			var kept []task
			for _, t := range q.tasks[q.head:] {
				if match(t) {
					out = append(out, t)
				} else {
					kept = append(kept, t)
				}
			}
			gone := len(q.tasks) - q.head - len(kept)
			q.tasks, q.head = kept, 0
			r.size -= gone
			q.lane.waiting -= gone
			if len(kept) == 0 {
				r.drop(l, i)
			}
			r.forget(q.lane)
		}
	}
	return out
}

func (r *readyQueue) lane(flow string) *lane {
	l := r.lanes[flow]
	if l == nil {
		if r.lanes == nil {
			r.lanes = map[string]*lane{}
		}
		l = &lane{flow: flow}
		r.lanes[flow] = l
	}
	return l
}

func (r *readyQueue) forget(l *lane) {
	if l.running == 0 && l.waiting == 0 {
		delete(r.lanes, l.flow)
	}
}

func (r *readyQueue) level(priority int) *level {
	i, found := slices.BinarySearchFunc(r.levels, priority, func(l *level, p int) int { return cmp.Compare(p, l.priority) })
	if !found {
		r.levels = slices.Insert(r.levels, i, &level{priority: priority})
	}
	return r.levels[i]
}
