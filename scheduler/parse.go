package scheduler

import (
	"fmt"
	"strings"
	"time"
)

// maxExpr bounds expressions: every list of values fits, written once.
const maxExpr = 1024

// ParseError says what is wrong with a cron expression.
type ParseError struct {
	Expr   string
	Offset int    // byte in Expr at which the fault is
	Field  string // "minute", "day of month" …; empty when it is no single field
	Reason string
	Hint   string // what to do; may be empty
}

func (e *ParseError) Error() string {
	s := fmt.Sprintf("cron expression %q: ", e.Expr)
	if e.Field != "" {
		s += e.Field + ": "
	}
	s += e.Reason
	if e.Hint != "" {
		s += " (" + e.Hint + ")"
	}
	return s
}

// ParseCron reads a cron expression whose local times are those of a zone; nil
// is UTC. It fails with *ParseError, also for expressions that can never match.
//
// An expression is five fields: minute (0-59), hour (0-23), day of month (1-31),
// month (1-12 or jan-dec) and day of week (0-7 or sun-sat; Sunday is 0 and 7). A
// sixth field in front is the second (0-59), else 0. A field is a list, split by
// commas, of values, ranges a-b, and * for all, each with an optional step /n
// that takes every nth value from the first on; a/n goes on to the field's end.
// A ? is a *. A day must match both of its fields; but when neither starts with
// *, one is enough. Names and the short forms @hourly, @daily, @midnight,
// @weekly, @monthly, @yearly and @annually may be in upper or lower case.
func ParseCron(expr string, zone *time.Location) (*Cron, error) {
	if zone == nil {
		zone = time.UTC
	}
	p, fault := parsePattern(expr)
	if fault != nil {
		fault.Expr = expr
		return nil, fault
	}
	return &Cron{expr: expr, pattern: p, zone: zone}, nil
}

const hintFields = "write minute, hour, day of month, month and day of week, with the second in front if it is needed"

func parsePattern(expr string) (pattern, *ParseError) {
	if len(expr) > maxExpr {
		return pattern{}, &ParseError{Offset: maxExpr, Reason: fmt.Sprintf("longer than %d bytes", maxExpr)}
	}
	words := split(expr, " \t")
	if len(words) == 0 {
		return pattern{}, &ParseError{Reason: "the expression is empty", Hint: hintFields}
	}
	head := words[0]
	if name, _, ok := strings.Cut(head.text, "="); ok && (name == "TZ" || name == "CRON_TZ") {
		return pattern{}, &ParseError{Offset: head.offset, Reason: "a zone cannot be part of the expression", Hint: "set the schedule's own time zone"}
	}
	if head.text[0] == '@' {
		return parseShort(words)
	}
	switch len(words) {
	case 5:
		words = append([]word{{text: "0"}}, words...)
	case 6:
	case 7:
		return pattern{}, &ParseError{Offset: words[6].offset, Reason: "a seventh field, the year, is not supported", Hint: hintFields}
	default:
		return pattern{}, &ParseError{Offset: len(expr), Reason: fmt.Sprintf("there must be 5 or 6 fields, not %d", len(words)), Hint: hintFields}
	}
	return parseFields(words)
}

// parseShort reads the forms that start with @.
func parseShort(words []word) (pattern, *ParseError) {
	head := words[0]
	if len(words) > 1 {
		return pattern{}, &ParseError{Offset: words[1].offset, Reason: "nothing may follow " + head.text}
	}
	var long string
	switch strings.ToLower(head.text) {
	case "@hourly":
		long = "0 0 * * * *"
	case "@daily", "@midnight":
		long = "0 0 0 * * *"
	case "@weekly":
		long = "0 0 0 * * 0"
	case "@monthly":
		long = "0 0 0 1 * *"
	case "@yearly", "@annually":
		long = "0 0 0 1 1 *"
	case "@every":
		return pattern{}, &ParseError{Offset: head.offset, Reason: "@every is not a cron expression", Hint: "use a schedule with an interval"}
	default:
		return pattern{}, &ParseError{Offset: head.offset, Reason: fmt.Sprintf("unknown short form %q", head.text),
			Hint: "there are @hourly, @daily, @midnight, @weekly, @monthly, @yearly and @annually"}
	}
	return parseFields(split(long, " "))
}

// parseFields reads six fields.
func parseFields(words []word) (pattern, *ParseError) {
	fields := [6]field{
		{name: "second", max: 59},
		{name: "minute", max: 59},
		{name: "hour", max: 23},
		{name: "day of month", min: 1, max: 31},
		{name: "month", min: 1, max: 12, names: "jan feb mar apr may jun jul aug sep oct nov dec"},
		{name: "day of week", max: 6, names: "sun mon tue wed thu fri sat", sunday: true},
	}
	var masks [6]uint64
	for i, f := range fields {
		mask, fault := f.parse(words[i])
		if fault != nil {
			fault.Field = f.name
			return pattern{}, fault
		}
		masks[i] = mask
	}
	p := pattern{
		second: masks[0], minute: masks[1], hour: masks[2],
		dom: masks[3], month: masks[4], dow: masks[5]&(1<<7-1) | masks[5]>>7,
		eitherDay: !words[3].star() && !words[5].star(),
		elapsed:   words[1].star() || words[2].star(),
	}
	if !p.possible() {
		return pattern{}, &ParseError{Offset: words[3].offset, Field: fields[3].name, Reason: "none of the months has such a day", Hint: "February ends on 28 or 29, April, June, September and November on 30"}
	}
	return p, nil
}

// possible reports whether any day matches. Each day of the year falls on each
// weekday at some time.
func (p *pattern) possible() bool {
	const leapYear = 2000
	for month := 1; month <= 12; month++ {
		if p.month>>month&1 == 1 && first(p.dom) <= monthLength(leapYear, month) {
			return true
		}
	}
	return p.eitherDay
}
