// Package scheduler hands things out when they are due and says what "when"
// means.
//
// [Queue] is one heap and one timer for anything that waits for an instant:
// schedules, retries, deadlines. It promises that nothing comes out early, that
// nothing added is lost or comes out twice, that values come out in order of
// due time and, for equal instants, of addition, and that a canceled timer gives
// its slot back at once. Due times are instants of the wall clock: when that
// clock jumps, the queue follows within a minute.
//
// [Schedule] gives the nominal times of a trigger, each strictly after the one
// before. [Cron] is calendar time in a zone and has defined answers for hours
// that a change of the zone's offset skips or repeats; [Every] is elapsed time.
// Both are computed from the nominal time before, never from now, so they do not
// drift. Schedules cover what UTC nanoseconds in 64 bits cover: September 1677
// to April 2262.
//
// The package starts no goroutines: [Queue.Run] runs, and calls its function, on
// the goroutine of its caller and ends with its context. Queues and schedules
// are safe for concurrent use. Only the standard library is imported, with its
// copy of the time zone database.
package scheduler
