package schedsim

import (
	"cmp"
	"maps"
	"math"
	"slices"
	"time"
)

// workers are the places for tasks, and the tasks that are ready and wait for one:
// those of higher priority first, the flows of one priority in turn, the tasks of
// one flow in the order in which they became ready.
type workers struct {
	idle   int
	share  int // how many one flow may have
	size   int // tasks that wait
	levels []*level
	going  map[*plan]int // of each flow
	busy   map[*attempt]struct{}

	stats Pool
	since time.Time // all are busy; the zero time while one is idle
}

// level is the tasks of one priority.
type level struct {
	priority int
	queues   []*queue // of flows with tasks; the next one's turn is first
}

type queue struct {
	plan  *plan
	tasks []task
}

func newWorkers(n int) workers {
	w := workers{going: map[*plan]int{}, busy: map[*attempt]struct{}{}, stats: Pool{Workers: max(n, 0)}}
	w.idle, w.share = math.MaxInt, math.MaxInt
	if n > 0 {
		w.idle, w.share = n, n-n/4
	}
	return w
}

// push lets a task wait for its turn.
func (w *workers) push(t task) {
	w.size++
	l := w.level(t.flow.Tasks[t.node].Priority)
	for _, q := range l.queues {
		if q.plan == t.plan {
			q.tasks = append(q.tasks, t)
			return
		}
	}
	l.queues = append(l.queues, &queue{t.plan, []task{t}})
}

func (w *workers) level(priority int) *level {
	i, found := slices.BinarySearchFunc(w.levels, priority, func(l *level, p int) int { return cmp.Compare(p, l.priority) })
	if !found {
		w.levels = slices.Insert(w.levels, i, &level{priority: priority})
	}
	return w.levels[i]
}

// next takes out the task whose turn it is, if a worker is free for it.
func (w *workers) next() (task, bool) {
	if w.idle == 0 || w.size == 0 {
		return task{}, false
	}
	for _, l := range w.levels {
		for range l.queues {
			q := l.queues[0]
			l.queues = l.queues[1:]
			if w.going[q.plan] >= w.share {
				l.queues = append(l.queues, q)
				continue
			}
			t := q.tasks[0]
			if q.tasks = q.tasks[1:]; len(q.tasks) > 0 {
				l.queues = append(l.queues, q)
			}
			w.size--
			return t, true
		}
	}
	return task{}, false
}

// withdraw takes out the tasks of a run.
func (w *workers) withdraw(o *openRun, now time.Time) {
	for _, l := range w.levels {
		for _, q := range l.queues {
			before := len(q.tasks)
			q.tasks = slices.DeleteFunc(q.tasks, func(t task) bool {
				if t.openRun == o {
					w.waited(t, now)
				}
				return t.openRun == o
			})
			w.size -= before - len(q.tasks)
		}
		l.queues = slices.DeleteFunc(l.queues, func(q *queue) bool { return len(q.tasks) == 0 })
	}
}

// take lets a worker begin an attempt.
func (w *workers) take(a *attempt, now time.Time) {
	w.waited(a.task, now)
	a.since = now
	w.going[a.plan]++
	w.busy[a] = struct{}{}
	w.stats.MostRunning = max(w.stats.MostRunning, len(w.busy))
	if w.idle--; w.idle == 0 {
		w.since = now
	}
}

// give makes the worker of an attempt free.
func (w *workers) give(a *attempt, now time.Time) {
	a.gone = true
	w.going[a.plan]--
	delete(w.busy, a)
	w.stats.Used += now.Sub(a.since).Seconds()
	if w.idle == 0 {
		w.stats.AllBusy += now.Sub(w.since)
	}
	w.idle++
}

// underWay is what the workers do, in the order of the runs.
func (w *workers) underWay() []*attempt {
	return slices.SortedFunc(maps.Keys(w.busy), func(a, b *attempt) int { return a.compare(b.task) })
}

// drain takes out all tasks that wait, in the order of the runs.
func (w *workers) drain() []task {
	var all []task
	w.each(func(t *task) { all = append(all, *t) })
	w.levels, w.size = nil, 0
	slices.SortFunc(all, task.compare)
	return all
}

func (t task) compare(other task) int {
	return cmp.Or(cmp.Compare(t.number, other.number), cmp.Compare(t.node, other.node))
}

// waited notes how long a task has waited for a worker.
func (w *workers) waited(t task, now time.Time) {
	if d := now.Sub(t.since); d > w.stats.LongestWait {
		w.stats.LongestWait, w.stats.LongestWaitAt, w.stats.LongestWaitOf = d, t.since, t.stats.Schedule
	}
}

// look notes how many tasks wait once all that could start have.
func (w *workers) look(now time.Time) {
	if w.size > w.stats.MostWaiting {
		w.stats.MostWaiting, w.stats.MostWaitingAt = w.size, now
	}
}

// charge notes how long those have waited that wait now.
func (w *workers) charge(now time.Time) {
	w.each(func(t *task) { w.waited(*t, now) })
}

// restart lets those that wait begin to wait now: the time before was an outage.
func (w *workers) restart(now time.Time) {
	w.each(func(t *task) { t.since = now })
}

func (w *workers) each(do func(*task)) {
	for _, l := range w.levels {
		for _, q := range l.queues {
			for i := range q.tasks {
				do(&q.tasks[i])
			}
		}
	}
}

// report closes the account at the end of a simulation.
func (w *workers) report(end time.Time, down bool) Pool {
	if !down {
		w.charge(end)
	}
	for _, a := range w.underWay() {
		w.stats.Used += end.Sub(a.since).Seconds()
	}
	if w.idle == 0 {
		w.stats.AllBusy += end.Sub(w.since)
	}
	return w.stats
}
