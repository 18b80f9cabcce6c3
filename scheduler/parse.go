package scheduler

import (
	"fmt"
	"strings"
)

// maxExpr bounds expressions: every list of values fits, written once.
const maxExpr = 1024

// ParseError reports what is wrong with an expression.
type ParseError struct {
	Notation string // "cron expression" or "calendar expression"
	Expr     string
	Offset   int    // byte in Expr at which the fault is
	Field    string // "minute", "day of month" …; empty when it is no single field
	Reason   string
	Hint     string // what to do; may be empty
}

func (e *ParseError) Error() string {
	s := fmt.Sprintf("%s %q: ", e.Notation, e.Expr)
	if e.Field != "" {
		s += e.Field + ": "
	}
	s += e.Reason
	if e.Hint != "" {
		s += " (" + e.Hint + ")"
	}
	return s
}

// ParseCron reads a cron expression. It fails with *ParseError, also for
// expressions that can never match.
//
// An expression is five fields: minute (0-59), hour (0-23), day of month (1-31),
// month (1-12 or jan-dec) and day of week (0-7 or sun-sat; Sunday is 0 and 7). Of
// six, the first is the second (0-59), else 0; a seventh is the year (1970-2262).
// A field is a list, split by commas, of values, ranges a-b, and * for all, each
// with an optional step /n that takes every nth value from the first on; a/n
// continues to the field's end. A ? is a *. Letters may be in upper or lower case.
//
// Days of the month are also L, the last; L-n, n days before it; nW, the day from
// Monday to Friday nearest to the nth and in its month; LW, the last such day.
// Days of the week are also d#n, the nth of the month, and d#L or dL, the last. A
// day must match both of its fields; but when neither starts with *, one is
// enough by default.
//
// H is a value that a hash of the options' name chooses, H(a-b) one of that range,
// H/n and H(a-b)/n every nth from such a one on. It chooses among the first 28
// days of a month and counts as a value, not as a *.
//
// The short forms are @hourly, @daily, @midnight, @weekly, @monthly, @yearly and
// @annually.
func ParseCron(expr string, o CronOptions) (*Cron, error) {
	c, fault := parseCron(expr, o)
	if fault != nil {
		fault.Notation, fault.Expr = "cron expression", expr
		return nil, fault
	}
	return c, nil
}

func parseCron(expr string, o CronOptions) (*Cron, *ParseError) {
	words, fault := cronWords(expr)
	if fault != nil {
		return nil, fault
	}
	p, text, fault := parseFields(words, o)
	if fault != nil {
		return nil, fault
	}
	c := &Cron{text: text}
	c.times.init(p, o.Zone, o.DST)
	if !c.times.everFires() {
		return nil, words[len(words)-1].fault(neverFires, "")
	}
	return c, nil
}

const hintFields = "write minute, hour, day of month, month and day of week, with the second in front and the year at the end if they are needed"

// cronWords is the seven fields of an expression.
func cronWords(expr string) ([]word, *ParseError) {
	words := split(expr[:min(len(expr), maxExpr)], " \t")
	if len(words) == 0 {
		return nil, &ParseError{Reason: "the expression is empty", Hint: hintFields}
	}
	if name, zone, ok := strings.Cut(words[0].text, "="); ok && (strings.EqualFold(name, "TZ") || strings.EqualFold(name, "CRON_TZ")) {
		return nil, zoneFault(words[0], zone)
	}
	if len(expr) > maxExpr {
		return nil, tooLong()
	}
	if words[0].text[0] == '@' {
		return shortWords(words)
	}
	always := word{text: "*", offset: len(expr)}
	switch len(words) {
	case 5:
		words = append([]word{{text: "0"}}, words...)
		return append(words, always), nil
	case 6:
		return append(words, always), nil
	case 7:
		return words, nil
	}
	return nil, &ParseError{Offset: len(expr), Reason: fmt.Sprintf("there must be 5 to 7 fields, not %d", len(words)), Hint: hintFields}
}

func tooLong() *ParseError {
	return &ParseError{Offset: maxExpr, Reason: fmt.Sprintf("longer than %d bytes", maxExpr)}
}

// zoneFault refuses a zone within an expression.
func zoneFault(w word, zone string) *ParseError {
	if zone == "" || len(zone) > 50 {
		zone = "Europe/Berlin"
	}
	return w.fault("a zone cannot be part of the expression", fmt.Sprintf("set the timezone attribute, timezone = %q; in Go, the zone of the schedule", zone))
}

// shortWords reads the forms that start with @.
func shortWords(words []word) ([]word, *ParseError) {
	head := words[0]
	var long string
	switch strings.ToLower(head.text) {
	case "@hourly":
		long = "0 0 * * * * *"
	case "@daily", "@midnight":
		long = "0 0 0 * * * *"
	case "@weekly":
		long = "0 0 0 * * 0 *"
	case "@monthly":
		long = "0 0 0 1 * * *"
	case "@yearly", "@annually":
		long = "0 0 0 1 1 * *"
	case "@every":
		interval := "5m"
		if len(words) > 1 {
			interval = words[1].text
		}
		return nil, head.fault("@every is not a cron expression", fmt.Sprintf("set every = %q instead of cron; in Go, NewEvery", interval))
	case "@reboot":
		return nil, head.fault("@reboot is no time", `there is nothing that fires at the start; every = "…" fires from then on`)
	default:
		return nil, head.fault(fmt.Sprintf("unknown short form %q", head.text),
			"there are @hourly, @daily, @midnight, @weekly, @monthly, @yearly and @annually; for an interval set every = \"…\"")
	}
	if len(words) > 1 {
		return nil, words[1].fault("nothing may follow "+head.text, "")
	}
	fields := split(long, " ")
	for i := range fields {
		fields[i].offset = head.offset
	}
	return fields, nil
}

// The fields of an expression, in order.
const (
	atSecond = iota
	atMinute
	atHour
	atDay
	atMonth
	atWeekday
	atYear
	fieldCount
)

// fieldTable is what the fields may hold.
func fieldTable() [fieldCount]field {
	return [fieldCount]field{
		{name: "second", max: 59, hashMax: 59},
		{name: "minute", max: 59, hashMax: 59},
		{name: "hour", max: 23, hashMax: 23},
		{name: "day of month", min: 1, max: 31, hashMax: 28, kind: dayOfMonth},
		{name: "month", min: 1, max: 12, hashMax: 12, names: "jan feb mar apr may jun jul aug sep oct nov dec"},
		{name: "day of week", max: 6, hashMax: 6, names: "sun mon tue wed thu fri sat", kind: dayOfWeek},
		{name: "year", min: minYear, max: maxYear},
	}
}

// parseFields reads seven fields into a pattern and its canonical text.
func parseFields(words []word, o CronOptions) (pattern, string, *ParseError) {
	fields := fieldTable()
	var all [fieldCount]values
	for i := range fields {
		v, fault := fields[i].parse(words[i], o.Name)
		if fault != nil {
			return pattern{}, "", fault
		}
		all[i] = v
	}
	p := newPattern(&all)
	p.eitherDay = o.DayMatch == DayEither && all[atDay].star == 0 && all[atWeekday].star == 0
	if fault := p.impossible(); fault != nil {
		for i, f := range fields {
			if f.name == fault.Field {
				fault.Offset = words[i].offset
			}
		}
		return pattern{}, "", fault
	}
	return p, cronText(&fields, &all), nil
}

// newPattern is the pattern of the values of all fields; a day must match both of
// its fields.
func newPattern(v *[fieldCount]values) pattern {
	p := pattern{
		second: v[atSecond].mask, minute: v[atMinute].mask, hour: v[atHour].mask, month: v[atMonth].mask,
		days:    v[atDay].special,
		week:    weekDays{v[atWeekday].mask, v[atWeekday].nth},
		elapsed: v[atMinute].star != 0 || v[atHour].star != 0,
	}
	p.days.from1 = v[atDay].mask
	if v[atYear].star != 1 {
		p.years = &v[atYear].years
	}
	return p
}
