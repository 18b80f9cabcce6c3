package scheduler_test

import (
	"fmt"
	"time"

	"github.com/flowhost/flowhost/scheduler"
)

func ExampleParseCron() {
	zone, err := time.LoadLocation("America/New_York")
	if err != nil {
		fmt.Println(err)
		return
	}
	daily, err := scheduler.ParseCron("30 2 * * *", scheduler.CronOptions{Zone: zone})
	if err != nil {
		fmt.Println(err)
		return
	}
	// On 8 March 2026 the clocks of New York go from 02:00 to 03:00.
	at := time.Date(2026, 3, 7, 0, 0, 0, 0, zone)
	for range 3 {
		at, _ = daily.Next(at)
		fmt.Println(at)
	}

	_, err = scheduler.ParseCron("61 * * * *", scheduler.CronOptions{})
	fmt.Println(err)
	// Output:
	// 2026-03-07 02:30:00 -0500 EST
	// 2026-03-08 03:00:00 -0400 EDT
	// 2026-03-09 02:30:00 -0400 EDT
	// cron expression "61 * * * *": minute: 61 is out of range (minute is 0 to 59)
}

// H spreads schedules that do not care about the minute: each name has its own.
func ExampleParseCron_hash() {
	for _, name := range []string{"billing/nightly", "reports/nightly"} {
		nightly, err := scheduler.ParseCron("H H(0-5) * * *", scheduler.CronOptions{Name: name})
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(name, nightly)
	}
	// Output:
	// billing/nightly 53 4 * * *
	// reports/nightly 1 2 * * *
}

func ExampleParseCalendar() {
	monthEnd, err := scheduler.ParseCalendar("Mon..Fri *-*-~01 09:00", time.UTC, scheduler.DSTCron)
	if err != nil {
		fmt.Println(err)
		return
	}
	at := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	for range 3 {
		at, _ = monthEnd.Next(at)
		fmt.Println(at.Format("Mon 2 Jan 15:04"))
	}
	// Output:
	// Tue 31 Mar 09:00
	// Thu 30 Apr 09:00
	// Tue 30 Jun 09:00
}

// The mode determines what happens to an hour that the local clock skips or repeats.
func ExampleDST() {
	zone, err := time.LoadLocation("America/New_York")
	if err != nil {
		fmt.Println(err)
		return
	}
	change, _ := scheduler.NextTransition(zone, time.Date(2026, 9, 1, 0, 0, 0, 0, time.UTC))
	fmt.Println(change.At, "the clock moves by", change.Shift())
	for _, mode := range []scheduler.DST{scheduler.DSTFirst, scheduler.DSTLast} {
		nightly, err := scheduler.ParseCron("30 1 * * *", scheduler.CronOptions{Zone: zone, DST: mode})
		if err != nil {
			fmt.Println(err)
			return
		}
		at, _ := nightly.Next(time.Date(2026, 11, 1, 0, 0, 0, 0, zone))
		fmt.Println(mode, at)
	}
	// Output:
	// 2026-11-01 01:00:00 -0500 EST the clock moves by -1h0m0s
	// first 2026-11-01 01:30:00 -0400 EDT
	// last 2026-11-01 01:30:00 -0500 EST
}

// Prev finds what should have happened last, such as a fire that a stopped program
// has missed.
func ExampleCron_Prev() {
	hourly, err := scheduler.ParseCron("@hourly", scheduler.CronOptions{})
	if err != nil {
		fmt.Println(err)
		return
	}
	started := time.Date(2026, 5, 1, 10, 20, 0, 0, time.UTC)
	missed, _ := hourly.Prev(started)
	fmt.Println(missed)
	// Output: 2026-05-01 10:00:00 +0000 UTC
}
