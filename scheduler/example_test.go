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
