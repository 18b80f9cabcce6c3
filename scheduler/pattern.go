package scheduler

import "math/bits"

const (
	hourSeconds = 60 * 60
	daySeconds  = 24 * hourSeconds
)

// searchMonths bounds the search for a day. No wait is longer than that for a 29
// February on one given weekday over a year 2100: 40 years.
const searchMonths = 50 * 12

// pattern is what a cron expression says about local time. Bit n of a mask
// stands for the value n. Local times are seconds since 1970-01-01 00:00 local.
type pattern struct {
	second, minute, hour uint64
	dom, month, dow      uint64 // days and months from 1, weekdays from Sunday, 0

	// eitherDay says that both day fields restrict: a day needs to match one.
	eitherDay bool

	// elapsed says that the minute or the hour field starts with a star.
	elapsed bool
}

// next is the first match at or after a local time.
func (p *pattern) next(local int64) (int64, bool) {
	today := floorDiv(local, daySeconds)
	day, ok := p.nextDay(today)
	if ok && day == today {
		if clock, ok := p.nextClock(local - today*daySeconds); ok {
			return today*daySeconds + clock, true
		}
		day, ok = p.nextDay(today + 1)
	}
	return day*daySeconds + p.clock(first(p.hour), first(p.minute), first(p.second)), ok
}

// nextClock is the first match within a day at or after a second of it.
func (p *pattern) nextClock(from int64) (int64, bool) {
	hour, minute, second := int(from/hourSeconds), int(from/60%60), int(from%60)
	if p.hour>>hour&1 == 1 {
		if p.minute>>minute&1 == 1 {
			if s := first(p.second >> second << second); s < 64 {
				return p.clock(hour, minute, s), true
			}
		}
		if m := first(p.minute >> (minute + 1) << (minute + 1)); m < 64 {
			return p.clock(hour, m, first(p.second)), true
		}
	}
	if h := first(p.hour >> (hour + 1) << (hour + 1)); h < 64 {
		return p.clock(h, first(p.minute), first(p.second)), true
	}
	return 0, false
}

func (*pattern) clock(hour, minute, second int) int64 {
	return int64(hour*hourSeconds + minute*60 + second)
}

// nextDay is the first match at or after a day. Days count from 1970-01-01.
func (p *pattern) nextDay(from int64) (int64, bool) {
	year, month, day := civil(from)
	for range searchMonths {
		if p.month>>month&1 == 1 {
			start, length := firstOfMonth(year, month), monthLength(year, month)
			if d := first(p.days(start, length) >> day << day); d < 64 {
				return start + int64(d) - 1, true
			}
		}
		day = 1
		if month++; month > 12 {
			year, month = year+1, 1
		}
	}
	return 0, false
}

// days is the matching days of the month that starts on a day.
func (p *pattern) days(start int64, length int) uint64 {
	const weeks = 1 | 1<<7 | 1<<14 | 1<<21 | 1<<28
	shift := weekday(start)
	week := (p.dow>>shift | p.dow<<(7-shift)) & (1<<7 - 1) // from the first of the month
	days := week * weeks << 1
	if p.eitherDay {
		days |= p.dom
	} else {
		days &= p.dom
	}
	return days & (1<<(length+1) - 2)
}

// first is the least value in a mask, 64 when there is none.
func first(mask uint64) int { return bits.TrailingZeros64(mask) }
