package main

import (
	"errors"
	"fmt"
	"strconv"
	"time"
)

// alarms is a scheduler as the benchmarks of timers use it. Timers have numbers;
// when one is due, the function that the scheduler was opened with is called with
// its number. Due times are of the wall clock.
type alarms interface {
	arm(n int, due time.Time) error
	cancel(n int) error
	rearm(n int, due time.Time) error

	// start returns when the scheduler is at work. Timers may be armed before and
	// after, but for each scheduler one of them may be much slower.
	start()

	// stop ends all goroutines, also without start.
	stop()
}

// contender is one scheduler of those that are measured side by side.
type contender struct {
	name string
	most int // timers that it arms within seconds
	open func(timers int, fire func(n int)) (alarms, error)
}

var contenders = []contender{
	{"flowhost", 1_000_000, openQueue},
	{"flowhost-go", 1_000_000, openQueueGo},
	{"AfterFunc", 1_000_000, openAfterFuncs},
	{"netresearch", 1_000_000, openNetresearch},
	{"robfig", 100_000, openRobfig},
	{"gocron", 100_000, openGocron},
	{"go-quartz", 10_000, openQuartz}, // each addition copies the queue and looks at all of it
}

// label is the contender's name, with the number of timers when it cannot have as
// many as are asked for.
func (c contender) label(timers int) string {
	if timers <= c.most {
		return c.name
	}
	return c.name + "-only-" + short(c.most)
}

// short is 10k for 10000 and 1M for 1000000.
func short(n int) string {
	switch {
	case n >= 1_000_000 && n%1_000_000 == 0:
		return fmt.Sprintf("%dM", n/1_000_000)
	case n >= 1_000 && n%1_000 == 0:
		return fmt.Sprintf("%dk", n/1_000)
	}
	return strconv.Itoa(n)
}

var errGone = errors.New("the timer is not armed any more")

func found(ok bool) error {
	if !ok {
		return errGone
	}
	return nil
}
