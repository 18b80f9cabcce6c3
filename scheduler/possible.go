package scheduler

const neverFires = "it never fires: its times lie after April 2262 or in what a change of the zone's offset skips"

// impossible reports why no day matches, nil if one does. Within 400 years the
// calendar repeats, so the search of next is conclusive.
func (p *pattern) impossible() *ParseError {
	if p.anyDay() {
		return nil
	}
	relaxed := *p
	relaxed.week = weekDays{each: 1<<7 - 1}
	if relaxed.anyDay() {
		return &ParseError{Field: "day of week", Reason: "the date never falls on such a day of the week", Hint: "both must match here"}
	}
	relaxed.years = nil
	if relaxed.anyDay() {
		return &ParseError{Field: "year", Reason: "none of the years has such a day", Hint: "29 February is in years such as 2028 and 2032"}
	}
	return &ParseError{Field: "day of month", Reason: "none of the months has such a day",
		Hint: "February ends on 28 or 29, April, June, September and November on 30; L is the last day of each"}
}

func (p *pattern) anyDay() bool {
	_, ok := p.nextDay(firstOfMonth(firstYear, 1))
	return ok
}

// everFires reports whether there is a fire at all. Only patterns with years can
// have none: any other comes again in years that have no such change.
func (l *localTimes) everFires() bool {
	if l.pattern.years == nil {
		return true
	}
	_, ok := l.nextSecond(firstSecond)
	return ok
}
