// Package workers has the goroutines that make attempts.
//
// A [Pool] has as many goroutines as jobs are under way, and some that wait for the next
// job: a stack that has grown once serves many jobs. The pool's owner is one goroutine; it
// calls [Pool.Begin], takes [Pool.Results] and calls [Pool.Returned] for each. A worker
// ends when there are enough that wait, or with [Pool.Close], and [Pool.Wait] waits for
// all but those that were abandoned.
package workers

import "sync"

// maxIdle is how many workers wait for the next job.
const maxIdle = 256

// Pool does jobs, each on a goroutine of its own.
type Pool[J, R any] struct {
	do      func(J) (result R, wanted bool)
	jobs    chan job[J] // to the workers that wait
	results chan R
	closed  chan struct{}
	running sync.WaitGroup

	idle int // workers that wait; of the owner
}

// New makes a pool without workers. do does one job; when nobody wants the result, because
// the job was abandoned meanwhile, its worker ends. So many results may wait for the owner
// before workers do.
func New[J, R any](do func(J) (result R, wanted bool), results int) *Pool[J, R] {
	return &Pool[J, R]{do: do, jobs: make(chan job[J], maxIdle), results: make(chan R, results), closed: make(chan struct{})}
}

// job is one job, or the end of a worker.
type job[J any] struct {
	of   J
	more bool
}

// Begin passes a job to a worker that waits, or to a new one. It never blocks.
func (p *Pool[J, R]) Begin(of J) {
	if p.idle > 0 {
		p.idle--
		p.jobs <- job[J]{of, true} // there is room for as many as may wait
		return
	}
	p.running.Add(1)
	go p.work(job[J]{of, true})
}

func (p *Pool[J, R]) work(next job[J]) {
	for ; next.more; next = <-p.jobs {
		result, wanted := p.do(next.of)
		if !wanted {
			return
		}
		if !p.deliver(result) {
			break
		}
	}
	p.running.Done()
}

// deliver passes a result to the owner. It reports false once nobody takes it.
func (p *Pool[J, R]) deliver(result R) bool {
	select {
	case p.results <- result: // mostly there is room, and looking at one channel is cheap
		return true
	default:
	}
	select {
	case p.results <- result:
		return true
	case <-p.closed:
		return false
	}
}

// Results are those of jobs that were not abandoned.
func (p *Pool[J, R]) Results() <-chan R { return p.results }

// Returned notes that a result was taken: its worker waits for the next job.
func (p *Pool[J, R]) Returned() {
	if p.idle < maxIdle {
		p.idle++
		return
	}
	p.jobs <- job[J]{} // its place in the channel is one that nobody waits for
}

// Abandon stops waiting for the worker of a job whose result nobody wants any more.
func (p *Pool[J, R]) Abandon() { p.running.Done() }

// Close ends the workers, those with a job once that has ended.
func (p *Pool[J, R]) Close() {
	close(p.closed)
	close(p.jobs)
}

// Wait waits until all workers have ended that were not abandoned.
func (p *Pool[J, R]) Wait() { p.running.Wait() }
