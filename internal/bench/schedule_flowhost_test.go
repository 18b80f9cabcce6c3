package main

import (
	"context"
	"sync"
	"time"

	"github.com/flowhost/flowhost/scheduler"
)

// All that is measured of package scheduler is called from this file.

// queue is flowhost's [alarms].
type queue struct {
	queue     *scheduler.Queue[int]
	timers    []scheduler.Timer
	fire      func(batch []int)
	cancelRun context.CancelFunc
	running   sync.WaitGroup
}

// openQueue calls fire on the goroutine that runs the queue.
func openQueue(timers int, fire func(n int)) (alarms, error) {
	return newQueue(timers, func(batch []int) {
		for _, n := range batch {
			fire(n)
		}
	}), nil
}

// openQueueGo starts a goroutine for each call of fire, which is what the peers do.
func openQueueGo(timers int, fire func(n int)) (alarms, error) {
	return newQueue(timers, func(batch []int) {
		for _, n := range batch {
			go fire(n)
		}
	}), nil
}

func newQueue(timers int, fire func(batch []int)) *queue {
	return &queue{
		queue:     scheduler.NewQueue[int](scheduler.Options{Limit: timers}),
		timers:    make([]scheduler.Timer, timers),
		fire:      fire,
		cancelRun: func() {},
	}
}

func (q *queue) arm(n int, due time.Time) (err error) {
	q.timers[n], err = q.queue.Add(due, n)
	return err
}

func (q *queue) cancel(n int) error {
	return found(q.queue.Cancel(q.timers[n]))
}

func (q *queue) rearm(n int, due time.Time) error {
	return found(q.queue.Reset(q.timers[n], due))
}

func (q *queue) start() {
	ctx, cancel := context.WithCancel(context.Background())
	q.cancelRun = cancel
	q.running.Go(func() { q.queue.Run(ctx, q.fire) })
}

func (q *queue) stop() {
	q.cancelRun()
	q.running.Wait()
}

func parseFlowhost(expr string, zone *time.Location) (nextFunc, error) {
	cron, err := scheduler.ParseCron(expr, scheduler.CronOptions{Zone: zone})
	if err != nil {
		return nil, err
	}
	return func(after time.Time) time.Time {
		at, _ := cron.Next(after)
		return at
	}, nil
}
