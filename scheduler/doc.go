// Package scheduler hands things out when they are due and states what "when"
// means.
//
// [Queue] is one heap and one timer for anything that waits for an instant:
// schedules, retries, deadlines. It promises that nothing comes out early, that
// nothing added is lost or comes out twice, that values come out in order of
// due time and, for equal instants, of priority and addition, and that a canceled
// timer gives its slot back at once. A million timers with values of 8 bytes take
// 36 MB; adding and canceling never stops to copy them.
//
// [Schedule] gives the nominal times of a trigger, forwards and backwards, each
// strictly after or before the one given. [Cron] and [Calendar] are two notations
// for calendar time in a zone; [DST] determines what happens to local times that a change
// of the zone's offset skips or repeats, and [NextTransition] when that is. [Every]
// is elapsed time, [At] one instant, [Bounded] any of them within bounds. All are
// computed from the nominal time before, never from now, so they do not drift. An
// expression that can never match is an error when it is parsed. [Jitter] spreads
// what would come at one instant, and [Policy] decides what becomes of times that
// were missed. Schedules cover what UTC nanoseconds in 64 bits cover: September
// 1677 to April 2262.
//
// [Scheduler] puts the two together for programs that want functions called at
// instants and on schedules, and need no more: workers, back-pressure, overlap,
// errors that end nothing.
//
// # Clocks
//
// Due times are instants of a [Clock]. That of the machine, [WallClock], is the
// default. On Linux a queue sleeps by a timer of the kernel, read through the
// runtime's poller, and by one of the runtime: p50 some 40 µs late, where the
// runtime alone is about 550. When the clock is set, or the machine was
// suspended, the queue looks again at once: what is due by the clock as it is now
// comes out in order, nothing comes out before its time. Elsewhere the queue
// sleeps by a timer of the runtime, a minute at most, and follows a clock that was
// set within that. An idle queue on Linux is not woken at all.
//
// Tests have two ways. In a bubble of [testing/synctest] the default clock is the
// bubble's; nothing has to be set. A [VirtualClock] does not move until it is moved,
// can be set back, and [Queue.RunUntil] on it is a simulation: the clock goes from
// one due time to the next.
//
// # Goroutines
//
// Schedules start none. [Queue.Run] and [Queue.RunUntil] run, and call their
// function, on the goroutine of their caller and end with its context, for which,
// when it ends, one goroutine wakes them; they wait for it. [Scheduler.Run] is
// such a caller; it starts one goroutine for each call under way, as many as there
// are workers, and returns when all have ended. [Scheduler.Close] ends it.
//
// All types are safe for concurrent use. Only the standard library is imported,
// with its copy of the time zone database.
package scheduler
