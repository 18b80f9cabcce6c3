package schedsim

import (
	"cmp"
	"maps"
	"math"
	"slices"
	"time"

	"github.com/flowhost/flowhost/internal/fairq"
)

// workers are the places for tasks, and the tasks that are ready and wait for one, as the
// engine has them.
type workers struct {
	places  *fairq.Places
	waiting fairq.Queue[task]
	busy    map[*attempt]struct{}

	stats Pool
	since time.Time // as many compute as may; the zero time while there is a place
}

func newWorkers(n int) workers {
	places := n
	if n <= 0 {
		places = math.MaxInt / 2
	}
	return workers{
		places: fairq.NewPlaces(places, math.MaxInt/2, nil),
		busy:   map[*attempt]struct{}{}, stats: Pool{Workers: max(n, 0)},
	}
}

// push lets a task wait for its turn.
func (w *workers) push(t task) {
	w.waiting.Push(t, t.flow.Name, t.flow.Tasks[t.node].Priority, nil)
}

// next takes out the task whose turn it is, if there is a place for it.
func (w *workers) next() (task, fairq.Place, bool) { return fairq.Admit(w.places, &w.waiting) }

// withdraw takes out the tasks of a run.
func (w *workers) withdraw(o *openRun, now time.Time) {
	for _, t := range w.waiting.Withdraw(func(t task) bool { return t.openRun == o }) {
		w.waited(t, now)
	}
}

// take lets an attempt begin, which has a place.
func (w *workers) take(a *attempt, now time.Time) {
	w.waited(a.task, now)
	a.since = now
	w.busy[a] = struct{}{}
	w.stats.MostRunning = max(w.stats.MostRunning, len(w.busy))
	if w.full() && w.since.IsZero() {
		w.since = now
	}
}

// full reports whether as many tasks compute as may, not counting those of flows that have
// no other.
func (w *workers) full() bool { return w.stats.Workers > 0 && len(w.busy) >= w.stats.Workers }

// give frees the place of an attempt.
func (w *workers) give(a *attempt, now time.Time) {
	a.gone = true
	w.places.Exit(&a.place)
	w.waiting.Done(a.flow.Name, nil)
	delete(w.busy, a)
	w.stats.Used += now.Sub(a.since).Seconds()
	if !w.full() && !w.since.IsZero() {
		w.stats.AllBusy += now.Sub(w.since)
		w.since = time.Time{}
	}
}

// underWay is what the workers do, in the order of the runs.
func (w *workers) underWay() []*attempt {
	return slices.SortedFunc(maps.Keys(w.busy), func(a, b *attempt) int { return a.compare(b.task) })
}

// drain takes out all tasks that wait, in the order of the runs.
func (w *workers) drain(now time.Time) []task {
	all := w.waiting.Withdraw(func(task) bool { return true })
	for _, t := range all {
		w.waited(t, now)
	}
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
	if n := w.waiting.Len(); n > w.stats.MostWaiting {
		w.stats.MostWaiting, w.stats.MostWaitingAt = n, now
	}
}

// report closes the account at the end of a simulation.
func (w *workers) report(end time.Time) Pool {
	w.drain(end)
	for _, a := range w.underWay() {
		w.stats.Used += end.Sub(a.since).Seconds()
	}
	if !w.since.IsZero() {
		w.stats.AllBusy += end.Sub(w.since)
	}
	return w.stats
}
