package main

import (
	"context"
	"errors"
	"strconv"
	"time"

	"github.com/go-co-op/gocron/v2"
	"github.com/google/uuid"
	netresearch "github.com/netresearch/go-cron"
	"github.com/reugn/go-quartz/quartz"
	robfig "github.com/robfig/cron/v3"
)

type afterFuncs struct {
	timers []*time.Timer
	fire   func(n int)
}

func openAfterFuncs(timers int, fire func(n int)) (alarms, error) {
	return &afterFuncs{make([]*time.Timer, timers), fire}, nil
}

func (a *afterFuncs) arm(n int, due time.Time) error {
	a.timers[n] = time.AfterFunc(time.Until(due), func() { a.fire(n) })
	return nil
}

func (a *afterFuncs) cancel(n int) error { return found(a.timers[n].Stop()) }

func (a *afterFuncs) rearm(n int, due time.Time) error {
	return found(a.timers[n].Reset(time.Until(due)))
}

func (a *afterFuncs) start() {}

func (a *afterFuncs) stop() {
	for _, t := range a.timers {
		if t != nil {
			t.Stop()
		}
	}
}

// once is a schedule of robfig and netresearch with a single time.
type once time.Time

func (o once) Next(after time.Time) time.Time {
	if after.Before(time.Time(o)) {
		return time.Time(o)
	}
	return time.Time{}
}

type robfigCron struct {
	*robfig.Cron
	entries []robfig.EntryID
	fire    func(n int)
}

func openRobfig(timers int, fire func(n int)) (alarms, error) {
	return &robfigCron{robfig.New(), make([]robfig.EntryID, timers), fire}, nil
}

func (r *robfigCron) arm(n int, due time.Time) error {
	r.entries[n] = r.Schedule(once(due), robfig.FuncJob(func() { r.fire(n) }))
	return nil
}

func (r *robfigCron) cancel(n int) error {
	r.Remove(r.entries[n])
	return nil
}

func (r *robfigCron) rearm(n int, due time.Time) error {
	r.Remove(r.entries[n])
	return r.arm(n, due)
}

// start has an entry looked up, which the scheduler's goroutine does once it has
// put all of them in order.
func (r *robfigCron) start() {
	r.Start()
	r.Entry(0)
}

func (r *robfigCron) stop() { <-r.Stop().Done() }

type netresearchCron struct {
	*netresearch.Cron
	entries []netresearch.EntryID
	fire    func(n int)
}

func openNetresearch(timers int, fire func(n int)) (alarms, error) {
	return &netresearchCron{netresearch.New(), make([]netresearch.EntryID, timers), fire}, nil
}

func (c *netresearchCron) arm(n int, due time.Time) (err error) {
	c.entries[n], err = c.ScheduleOnceJob(once(due), netresearch.FuncJob(func() { c.fire(n) }))
	return err
}

func (c *netresearchCron) cancel(n int) error {
	c.Remove(c.entries[n])
	return nil
}

func (c *netresearchCron) rearm(n int, due time.Time) error {
	c.Remove(c.entries[n])
	return c.arm(n, due)
}

// start does as robfig's.
func (c *netresearchCron) start() {
	c.Start()
	c.Entry(0)
}

func (c *netresearchCron) stop() { c.StopAndWait() }

// goCron is started when it is opened: v2.21.2 hangs in Start when a timer is
// overdue.
type goCron struct {
	gocron.Scheduler
	ids  []uuid.UUID
	fire func(n int)
}

func openGocron(timers int, fire func(n int)) (alarms, error) {
	s, err := gocron.NewScheduler()
	if err != nil {
		return nil, err
	}
	s.Start()
	return &goCron{s, make([]uuid.UUID, timers), fire}, nil
}

func (g *goCron) at(n int, due time.Time) (gocron.JobDefinition, gocron.Task) {
	return gocron.OneTimeJob(gocron.OneTimeJobStartDateTime(due)), gocron.NewTask(func() { g.fire(n) })
}

func (g *goCron) arm(n int, due time.Time) error {
	job, err := g.NewJob(g.at(n, due))
	if err == nil {
		g.ids[n] = job.ID()
	}
	return err
}

func (g *goCron) cancel(n int) error { return g.RemoveJob(g.ids[n]) }

func (g *goCron) rearm(n int, due time.Time) error {
	definition, task := g.at(n, due)
	_, err := g.Update(g.ids[n], definition, task)
	return err
}

func (g *goCron) start() {}

func (g *goCron) stop() { g.Shutdown() }

type goQuartz struct {
	quartz.Scheduler
	fire func(n int)
}

// openQuartz has nothing count as outdated: by default, what is 100 ms late does
// not run at all.
func openQuartz(_ int, fire func(n int)) (alarms, error) {
	s, err := quartz.NewStdScheduler(quartz.WithOutdatedThreshold(time.Hour))
	return &goQuartz{s, fire}, err
}

func (q *goQuartz) arm(n int, due time.Time) error {
	return q.ScheduleJob(quartz.NewJobDetail(quartzJob{n, q.fire}, quartzKey(n)), quartzOnce(due.UnixNano()))
}

func (q *goQuartz) cancel(n int) error { return q.DeleteJob(quartzKey(n)) }

func (q *goQuartz) rearm(n int, due time.Time) error {
	return errors.Join(q.cancel(n), q.arm(n, due))
}

func (q *goQuartz) start() { q.Start(context.Background()) }

func (q *goQuartz) stop() {
	q.Stop()
	q.Wait(context.Background())
}

func quartzKey(n int) *quartz.JobKey { return quartz.NewJobKey(strconv.Itoa(n)) }

type quartzJob struct {
	n    int
	fire func(n int)
}

func (j quartzJob) Execute(context.Context) error {
	j.fire(j.n)
	return nil
}

func (j quartzJob) Description() string { return "" }

// quartzOnce is a trigger with a single time, in Unix nanoseconds.
type quartzOnce int64

func (o quartzOnce) NextFireTime(prev int64) (int64, error) {
	if prev < int64(o) {
		return int64(o), nil
	}
	return 0, quartz.ErrTriggerExpired
}

func (o quartzOnce) Description() string { return "" }
