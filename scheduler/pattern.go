package scheduler

import "math/bits"

const (
	hourSeconds = 60 * 60
	daySeconds  = 24 * hourSeconds
)

// The years that a year field may name, and that a search goes through: those
// that nanoseconds in 64 bits touch and, for local time, one on either side.
const (
	minYear, maxYear     = 1970, 2262
	firstYear, finalYear = 1676, maxYear + 1
)

// pattern is the local times of an expression. Bit n of a mask represents
// for the value n. Local times are seconds since 1970-01-01 00:00 local.
type pattern struct {
	second, minute, hour uint64
	month                uint64 // from 1
	days                 monthDays
	week                 weekDays
	years                *years // nil is all

	// eitherDay reports that both day fields restrict, but a day needs to match
	// only one.
	eitherDay bool

	// elapsed reports that the minute or the hour field starts with a star.
	elapsed bool
}

// next is the first match at or after a local time.
func (p *pattern) next(local int64) (int64, bool) {
	day := floorDiv(local, daySeconds)
	today, left := p.nextClock(local - day*daySeconds)
	from := day
	if !left {
		from++
	}
	on, ok := p.nextDay(from)
	if on == day {
		return day*daySeconds + today, ok
	}
	return on*daySeconds + clock(first(p.hour), first(p.minute), first(p.second)), ok
}

// nextClock is the first match within a day at or after a second of it.
func (p *pattern) nextClock(from int64) (int64, bool) {
	hour, minute, second := int(from/hourSeconds), int(from/60%60), int(from%60)
	if p.hour>>hour&1 == 1 {
		if p.minute>>minute&1 == 1 {
			if s := first(p.second >> second << second); s < 64 {
				return clock(hour, minute, s), true
			}
		}
		if m := first(p.minute >> (minute + 1) << (minute + 1)); m < 64 {
			return clock(hour, m, first(p.second)), true
		}
	}
	if h := first(p.hour >> (hour + 1) << (hour + 1)); h < 64 {
		return clock(h, first(p.minute), first(p.second)), true
	}
	return 0, false
}

// nextDay is the first match at or after a day. Days count from 1970-01-01.
func (p *pattern) nextDay(from int64) (int64, bool) {
	year, month, day := civil(from)
	var seen yearKinds
	for {
		if y := p.years.next(year); y != year {
			year, month, day = y, 1, 1
		}
		if year > finalYear {
			return 0, false
		}
		m := 13
		if month > 1 || day > 1 || seen.first(year) {
			m = first(p.month >> month << month)
		}
		if m > 12 {
			year, month, day = year+1, 1, 1
			continue
		}
		if m != month {
			month, day = m, 1
		}
		start := firstOfMonth(year, month)
		if d := first(p.matching(start, monthLength(year, month)) >> day << day); d < 64 {
			return start + int64(d) - 1, true
		}
		month, day = month+1, 1
	}
}

// matching is the matching days of a month that starts on a day.
func (p *pattern) matching(start int64, length int) uint64 {
	weekday := weekday(start)
	week := p.week.in(weekday, length)
	days := p.days.in(weekday, length)
	if p.eitherDay {
		days |= week
	} else {
		days &= week
	}
	return days & (1<<(length+1) - 2)
}

// yearKinds are the kinds of years that a search has gone through as a whole. There are
// 14, by the weekday on which they start and their length: a search through all years
// looks at one of each.
type yearKinds uint16

// first reports whether a year is the first of its kind. The others have no match
// either: the search would have ended.
func (k *yearKinds) first(year int64) bool {
	kind := yearKinds(1) << (weekday(firstOfMonth(year, 1)) + 7*(monthLength(year, 2)-28))
	seen := *k&kind != 0
	*k |= kind
	return !seen
}

func clock(hour, minute, second int) int64 {
	return int64(hour*hourSeconds + minute*60 + second)
}

// first is the least value in a mask, 64 when there is none; last is the
// greatest, -1 when there is none.
func first(mask uint64) int { return bits.TrailingZeros64(mask) }
func last(mask uint64) int  { return bits.Len64(mask) - 1 }
