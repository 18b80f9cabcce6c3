package scheduler

import (
	"strings"
	"time"
)

// Calendar is a schedule in the notation of systemd's calendar events: local
// times in a zone. It is safe for concurrent use.
type Calendar struct {
	text  string
	times localTimes
}

// Next is the first time of the schedule after the given one, in its zone and on
// a whole second.
func (c *Calendar) Next(after time.Time) (time.Time, bool) { return c.times.next(after) }

// Prev is the last time of the schedule before the given one, in its zone and on
// a whole second.
func (c *Calendar) Prev(before time.Time) (time.Time, bool) { return c.times.prev(before) }

// In is the same local times in another zone. A nil zone is UTC.
func (c *Calendar) In(zone *time.Location) *Calendar {
	in := &Calendar{text: c.text}
	in.times.like(&c.times, zone)
	return in
}

// String is the expression in canonical form: all parts written out, lists in
// order. It can be parsed again. The zone and the mode are not in it.
func (c *Calendar) String() string { return c.text }

// ParseCalendar reads a calendar event after systemd.time(7), without zones,
// fractions of a second and years of two digits. A nil zone is UTC. It fails with
// *ParseError, also for expressions that can never match.
//
// An expression is days of the week, a date and a time, all of which a fire must
// match: "Mon..Fri 2026-01..03-* 09:00". Days of the week are a list of names, Mon
// or Monday, and ranges; left out, they are all. The date is year, month and day,
// or month and day; left out, it is *-*-*. With ~ before it, alone or after the -,
// the day counts from the month's end: *-*-~01 is the last. The time is hour,
// minute and, unless it is 0, second; left out, it is 00:00:00. Each of their
// parts is * for all or a list of values, ranges a..b, steps a/n, from a to the
// part's end, and a..b/n.
//
// The short forms are minutely, hourly, daily, weekly (on Monday), monthly,
// quarterly, semiannually, yearly and annually. For DSTCron, an hour or minute
// that starts with * or 0/n follows elapsed time.
func ParseCalendar(expr string, zone *time.Location, dst DST) (*Calendar, error) {
	p, text, fault := parseCalendar(expr)
	c := &Calendar{text: text}
	if fault == nil {
		c.times.init(p, zone, dst)
		if !c.times.everFires() {
			fault = &ParseError{Reason: neverFires}
		}
	}
	if fault != nil {
		fault.Notation, fault.Expr = "calendar expression", expr
		return nil, fault
	}
	return c, nil
}

const hintCalendar = `write days of the week, date and time, such as "Mon..Fri *-*-* 09:00", or a short form such as daily`

func parseCalendar(expr string) (pattern, string, *ParseError) {
	words := split(expr[:min(len(expr), maxExpr)], " \t")
	if fault := calendarZone(words); fault != nil {
		return pattern{}, "", fault
	}
	switch {
	case len(words) == 0:
		return pattern{}, "", &ParseError{Reason: "the expression is empty", Hint: hintCalendar}
	case len(expr) > maxExpr:
		return pattern{}, "", tooLong()
	}
	if long, ok := calendarShort(words[0].text); ok {
		if len(words) > 1 {
			return pattern{}, "", words[1].fault("nothing may follow "+words[0].text, "")
		}
		words = split(long, " ")
	}
	all, fault := calendarParts(words)
	if fault != nil {
		return pattern{}, "", fault
	}
	p := newPattern(&all)
	if fault := p.impossible(); fault != nil {
		fault.Offset = words[0].offset
		return pattern{}, "", fault
	}
	return p, calendarText(&all), nil
}

// calendarZone refuses a zone, which systemd has at the end.
func calendarZone(words []word) *ParseError {
	for i, w := range words {
		name, zone, set := w.cut("=")
		switch first := w.text[0] | ' '; {
		case set && strings.HasSuffix(strings.ToUpper(name.text), "TZ"):
			return zoneFault(w, zone.text)
		case first < 'a' || first > 'z' || isWeek(w):
		case i > 0 || strings.Contains(w.text, "/") || strings.EqualFold(w.text, "UTC"):
			return zoneFault(w, w.text)
		}
	}
	return nil
}

// isWeek reports whether w starts with a day of the week or is a short form.
func isWeek(w word) bool {
	end := strings.IndexAny(w.text+",", ",.")
	_, short := calendarShort(w.text)
	_, fault := calendarWeekday(w.to(end))
	return short || fault == nil
}

func calendarShort(s string) (string, bool) {
	long, ok := map[string]string{
		"minutely":     "*-*-* *:*:00",
		"hourly":       "*-*-* *:00:00",
		"daily":        "*-*-* 00:00:00",
		"weekly":       "Mon *-*-* 00:00:00",
		"monthly":      "*-*-01 00:00:00",
		"quarterly":    "*-01,04,07,10-01 00:00:00",
		"semiannually": "*-01,07-01 00:00:00",
		"yearly":       "*-01-01 00:00:00",
		"annually":     "*-01-01 00:00:00",
	}[strings.ToLower(s)]
	return long, ok
}
