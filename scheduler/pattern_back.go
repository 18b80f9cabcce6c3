package scheduler

// prev is the last match at or before a local time.
func (p *pattern) prev(local int64) (int64, bool) {
	day := floorDiv(local, daySeconds)
	today, left := p.prevClock(local - day*daySeconds)
	from := day
	if !left {
		from--
	}
	on, ok := p.prevDay(from)
	if on == day {
		return day*daySeconds + today, ok
	}
	return on*daySeconds + clock(last(p.hour), last(p.minute), last(p.second)), ok
}

// prevClock is the last match within a day at or before a second of it.
func (p *pattern) prevClock(to int64) (int64, bool) {
	hour, minute, second := int(to/hourSeconds), int(to/60%60), int(to%60)
	if p.hour>>hour&1 == 1 {
		if p.minute>>minute&1 == 1 {
			if s := last(p.second & (1<<(second+1) - 1)); s >= 0 {
				return clock(hour, minute, s), true
			}
		}
		if m := last(p.minute & (1<<minute - 1)); m >= 0 {
			return clock(hour, m, last(p.second)), true
		}
	}
	if h := last(p.hour & (1<<hour - 1)); h >= 0 {
		return clock(h, last(p.minute), last(p.second)), true
	}
	return 0, false
}

// prevDay is the last match at or before a day.
func (p *pattern) prevDay(to int64) (int64, bool) {
	year, month, day := civil(to)
	var seen yearKinds
	for {
		if y := p.years.prev(year); y != year {
			year, month, day = y, 12, 31
		}
		if year < firstYear {
			return 0, false
		}
		m := 0
		if month < 12 || day < 31 || seen.first(year) {
			m = last(p.month & (1<<(month+1) - 1))
		}
		if m < 1 {
			year, month, day = year-1, 12, 31
			continue
		}
		if m != month {
			month, day = m, 31
		}
		start := firstOfMonth(year, month)
		if d := last(p.matching(start, monthLength(year, month)) & (1<<(day+1) - 1)); d >= 1 {
			return start + int64(d) - 1, true
		}
		month, day = month-1, 31
	}
}
