package engine

import (
	"cmp"
	"slices"
)

// readyQueue holds the tasks that may start as soon as a worker is free and their
// limits have room: those of higher priority first, the flows of one priority in
// turn, the tasks of one flow in the order in which they became ready. So a flow of
// very many tasks makes no other one wait for more than its turn, and tasks whose
// limits are used up keep back no others.
type readyQueue struct {
	size   int
	clock  uint64           // ticks whenever something comes or goes
	levels []*level         // by descending priority; those in use
	lanes  map[string]*lane // by flow; those with waiting or running tasks
	spare  *queue           // emptied, for the next one that begins
}

// lane is what a flow has waiting and running, over all priorities.
type lane struct {
	flow             string
	running, waiting int
	queues           []*queue // a few: one for each priority and set of limits
}

// level is the waiting tasks of one priority.
type level struct {
	priority int
	crowds   []*crowd // as many as there are sets of limits
}

// crowd is the waiting tasks of one priority that have the same limits. Its queues
// are linked, the one whose flow had its turn longest ago first.
type crowd struct {
	level       *level
	quotas      []*quota
	first, last *queue
}

// queue is the waiting tasks of one flow that are in one crowd.
type queue struct {
	lane       *lane
	crowd      *crowd
	prev, next *queue
	turn       uint64 // when its flow had one at this priority, or the queue began
	tasks      []waitingTask
	head       int // how many of tasks are gone
}

type waitingTask struct {
	task
	since uint64
}

// push adds a task that has these limits, sorted by name.
func (r *readyQueue) push(t task, quotas []*quota) {
	r.size++
	r.clock++
	for _, limit := range quotas {
		limit.waiting++
	}
	l := r.lane(t.run.Flow)
	l.waiting++
	q := l.queue(t.priority(), quotas)
	if q == nil {
		q = r.newQueue()
		q.lane, q.crowd, q.turn = l, r.level(t.priority()).crowd(quotas), r.clock
		q.crowd.append(q) // its turn is after that of all others
		l.queues = append(l.queues, q)
	}
	q.tasks = append(q.tasks, waitingTask{t, r.clock})
}

// pop takes out the task whose turn it is among those whose limits have room and
// whose flows have less than share running. It counts as running, and takes a slot
// of each of its limits.
func (r *readyQueue) pop(share int) (task, bool) {
	for _, l := range r.levels {
		if q := l.first(share); q != nil {
			return r.take(q.lane.oldest(l)), true
		}
	}
	return task{}, false
}

// first is a queue of the flow whose turn it is, nil when no task of the level may
// start.
func (l *level) first(share int) *queue {
	var first *queue
	for _, c := range l.crowds {
		if !haveRoom(c.quotas) {
			continue
		}
		for q := c.first; q != nil; q = q.next {
			if q.lane.running < share {
				if first == nil || q.turn < first.turn {
					first = q
				}
				break
			}
		}
	}
	return first
}

// oldest is the queue with the flow's task of a priority that became ready first,
// of those that may start.
func (l *lane) oldest(at *level) *queue {
	var oldest *queue
	for _, q := range l.queues {
		if q.crowd.level == at && haveRoom(q.crowd.quotas) && (oldest == nil || q.tasks[q.head].since < oldest.tasks[oldest.head].since) {
			oldest = q
		}
	}
	return oldest
}

func (r *readyQueue) take(q *queue) task {
	t := q.tasks[q.head].task
	q.tasks[q.head] = waitingTask{}
	q.head++
	q.lane.waiting--
	q.lane.running++
	r.size--
	r.clock++
	for _, limit := range q.crowd.quotas {
		limit.waiting--
		limit.held++
	}
	q.lane.hadTurn(q.crowd.level, r.clock)
	switch {
	case q.head == len(q.tasks):
		r.drop(q)
	case q.head > len(q.tasks)/2 && q.head > 1024:
		q.tasks = append([]waitingTask(nil), q.tasks[q.head:]...)
		q.head = 0
	}
	return t
}

// hadTurn puts the flow's queues of a priority behind those of all others.
func (l *lane) hadTurn(at *level, now uint64) {
	for _, q := range l.queues {
		if q.crowd.level == at {
			q.turn = now
			q.crowd.unlink(q)
			q.crowd.append(q)
		}
	}
}

// drop forgets a queue that is empty.
func (r *readyQueue) drop(q *queue) {
	q.crowd.unlink(q)
	q.lane.queues = without(q.lane.queues, q)
	c := q.crowd
	if cap(q.tasks) <= maxSpareTasks {
		*q = queue{tasks: q.tasks[:0]}
		r.spare = q
	}
	if c.first != nil {
		return
	}
	c.level.crowds = without(c.level.crowds, c)
	if len(c.level.crowds) == 0 {
		r.levels = without(r.levels, c.level)
	}
}

// maxSpareTasks is how many tasks an emptied queue may have room for to be kept.
const maxSpareTasks = 16

func (r *readyQueue) newQueue() *queue {
	if q := r.spare; q != nil {
		r.spare = nil
		return q
	}
	return new(queue)
}

func without[T comparable](list []T, gone T) []T {
	i := slices.Index(list, gone)
	return slices.Delete(list, i, i+1)
}

// done says that a task of the flow, taken out before, runs no more, and gives back
// its slots.
func (r *readyQueue) done(flow string, quotas []*quota) {
	for _, limit := range quotas {
		limit.held--
	}
	l := r.lanes[flow]
	l.running--
	r.forget(l)
}

// withdraw takes out the tasks that match.
func (r *readyQueue) withdraw(match func(task) bool) []task {
	var out []task
	for _, level := range slices.Clone(r.levels) {
		for _, c := range slices.Clone(level.crowds) {
			for q := c.first; q != nil; {
				next := q.next
				out = append(out, r.withdrawFrom(q, match)...)
				q = next
			}
		}
	}
	return out
}

func (r *readyQueue) withdrawFrom(q *queue, match func(task) bool) []task {
	l := q.lane
	var out []task
	var kept []waitingTask
	for _, t := range q.tasks[q.head:] {
		if match(t.task) {
			out = append(out, t.task)
		} else {
			kept = append(kept, t)
		}
	}
	q.tasks, q.head = kept, 0
	r.size -= len(out)
	l.waiting -= len(out)
	for _, limit := range q.crowd.quotas {
		limit.waiting -= len(out)
	}
	if len(kept) == 0 {
		r.drop(q)
	}
	r.forget(l)
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

// queue finds the flow's queue of a priority and limits, nil when it has none.
func (l *lane) queue(priority int, quotas []*quota) *queue {
	for _, q := range l.queues {
		if q.crowd.level.priority == priority && slices.Equal(q.crowd.quotas, quotas) {
			return q
		}
	}
	return nil
}

func (r *readyQueue) level(priority int) *level {
	i, found := slices.BinarySearchFunc(r.levels, priority, func(l *level, p int) int { return cmp.Compare(p, l.priority) })
	if !found {
		r.levels = slices.Insert(r.levels, i, &level{priority: priority})
	}
	return r.levels[i]
}

func (l *level) crowd(quotas []*quota) *crowd {
	for _, c := range l.crowds {
		if slices.Equal(c.quotas, quotas) {
			return c
		}
	}
	c := &crowd{level: l, quotas: quotas}
	l.crowds = append(l.crowds, c)
	return c
}

// append makes a queue the last one.
func (c *crowd) append(q *queue) {
	q.prev, q.next = c.last, nil
	if c.last == nil {
		c.first = q
	} else {
		c.last.next = q
	}
	c.last = q
}

func (c *crowd) unlink(q *queue) {
	if q.prev == nil {
		c.first = q.next
	} else {
		q.prev.next = q.next
	}
	if q.next == nil {
		c.last = q.prev
	} else {
		q.next.prev = q.prev
	}
}
