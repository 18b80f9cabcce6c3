package scheduler

import "time"

// Cron is a schedule in cron's notation: local times in a zone. It is safe for
// concurrent use.
type Cron struct {
	text  string
	times localTimes
}

// CronOptions define how to read a cron expression. The zero value is the usual way,
// in UTC.
type CronOptions struct {
	// Zone is where the expression's times are local. Default UTC.
	Zone *time.Location

	// DST determines what happens to skipped and repeated times. Default DSTCron.
	DST DST

	// DayMatch determines which days fit when day of month and day of week both
	// restrict. Default DayEither.
	DayMatch DayMatch

	// Name is what H hashes, such as "flow/trigger". Default none: an expression
	// with H is an error.
	Name string
}

// DayMatch determines which days fit when the day of the month and the day of the week
// both restrict, that is, when neither field starts with *.
type DayMatch uint8

// The ways to match days.
const (
	DayEither DayMatch = iota // one of the fields is enough; cron's way
	DayBoth                   // both fields must fit
)

// String is the name that [ParseDayMatch] reads.
func (m DayMatch) String() string {
	if m == DayBoth {
		return "and"
	}
	return "or"
}

// ParseDayMatch reads or (DayEither) or and (DayBoth).
func ParseDayMatch(name string) (DayMatch, bool) {
	return map[string]DayMatch{"and": DayBoth}[name], name == "or" || name == "and"
}

// Next is the first time of the schedule after the given one, in its zone and on
// a whole second.
func (c *Cron) Next(after time.Time) (time.Time, bool) { return c.times.next(after) }

// Prev is the last time of the schedule before the given one, in its zone and on
// a whole second.
func (c *Cron) Prev(before time.Time) (time.Time, bool) { return c.times.prev(before) }

// In is the same local times in another zone. A nil zone is UTC: there every local
// time of a schedule comes once, whatever its own zone skips or repeats.
func (c *Cron) In(zone *time.Location) *Cron {
	in := &Cron{text: c.text}
	in.times.like(&c.times, zone)
	return in
}

// String is the expression in canonical form: numbers for names, hashes resolved,
// lists in order. It can be parsed again. The zone and the options are not in it.
func (c *Cron) String() string { return c.text }
