package scheduler_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/flowhost/flowhost/scheduler"
)

// A scheduler calls functions. A program runs it for as long as it lives.
func ExampleScheduler() {
	ctx, stop := context.WithTimeout(context.Background(), time.Minute)
	defer stop()
	s := scheduler.New(scheduler.Config{
		Workers: 4,
		OnError: func(_ scheduler.Fire, err error) { fmt.Println(err) },
	})

	report, err := s.Cron("0 9 * * 1-5", time.UTC, func(context.Context, scheduler.Fire) error {
		fmt.Println("not within this example")
		return nil
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	calls := 0
	_, err = s.Every(10*time.Millisecond, func(ctx context.Context, f scheduler.Fire) error {
		fmt.Println("every 10ms, at a multiple of it:", f.Nominal.UnixNano()%int64(10*time.Millisecond) == 0)
		if calls++; calls == 2 {
			f.Entry.Cancel()
			stop()
		}
		return errors.New("an error does not end the schedule")
	})
	if err != nil {
		fmt.Println(err)
		return
	}

	fmt.Println(s.Run(ctx))
	fmt.Println("canceled:", report.Cancel())
	// Output:
	// every 10ms, at a multiple of it: true
	// an error does not end the schedule
	// every 10ms, at a multiple of it: true
	// an error does not end the schedule
	// context canceled
	// canceled: true
}

// A plan says more than the short forms do.
func ExampleScheduler_Add() {
	s := scheduler.New(scheduler.Config{})
	quarterly, err := scheduler.ParseCron("*/15 * * * *", scheduler.CronOptions{})
	if err != nil {
		fmt.Println(err)
		return
	}
	entry, err := s.Add(scheduler.Plan{
		Name:     "reports",
		Schedule: quarterly,
		Priority: 10,                     // before others of the same instant
		Overlap:  scheduler.OverlapAllow, // also while the last one still runs
		Call:     func(context.Context, scheduler.Fire) error { return nil },
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	next, ok := entry.Next()
	fmt.Println(next.Minute()%15, ok)
	// Output:
	// 0 true
}

func ExampleQueue() {
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	q := scheduler.NewQueue[string](scheduler.Options{})
	now := time.Now()
	for i, name := range []string{"third", "second", "first", "canceled"} {
		timer, err := q.Add(now.Add(time.Duration(3-i)*5*time.Millisecond), name)
		if err != nil { // the queue is full
			fmt.Println(err)
			return
		}
		if name == "canceled" {
			q.Cancel(timer)
		}
	}
	err := q.Run(ctx, func(batch []string) {
		for _, name := range batch {
			fmt.Println(name)
		}
		if q.Len() == 0 {
			stop()
		}
	})
	fmt.Println(err)
	// Output:
	// first
	// second
	// third
	// context canceled
}

// A month of a schedule in no time.
func ExampleQueue_RunUntil() {
	start := time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)
	clock := scheduler.NewVirtualClock(start)
	q := scheduler.NewQueue[time.Time](scheduler.Options{Clock: clock})
	mondays, err := scheduler.ParseCron("0 9 * * 1", scheduler.CronOptions{})
	if err != nil {
		fmt.Println(err)
		return
	}
	arm := func(after time.Time) {
		if next, ok := mondays.Next(after); ok {
			if _, err := q.Add(next, next); err != nil {
				fmt.Println(err)
			}
		}
	}
	arm(start)
	err = q.RunUntil(context.Background(), start.AddDate(0, 1, 0), func(batch []time.Time) {
		for _, nominal := range batch {
			fmt.Println(clock.Now().Format(time.DateTime), nominal.Equal(clock.Now()))
			arm(nominal)
		}
	})
	fmt.Println(clock.Now().Format(time.DateOnly), err)
	// Output:
	// 2026-03-02 09:00:00 true
	// 2026-03-09 09:00:00 true
	// 2026-03-16 09:00:00 true
	// 2026-03-23 09:00:00 true
	// 2026-03-30 09:00:00 true
	// 2026-04-01 <nil>
}
