package scheduler

import (
	"fmt"
	"strings"
)

// field is what a field of an expression may hold.
type field struct {
	name     string
	min, max int
	hashMax  int    // the greatest value that H gives without a range
	names    string // of the values from min on, three letters each
	kind     fieldKind
}

// fieldKind distinguishes the fields with special syntax.
type fieldKind uint8

const (
	plainField fieldKind = iota
	dayOfMonth
	dayOfWeek    // max+1 is another word for min
	calendarPart // of a calendar expression
)

// values are those of a field. Values past 63, which are years, count from
// minYear in years; the others are bits of mask.
type values struct {
	mask  uint64
	years years
	star  int // the step of the * that the field starts with; 0 when it does not

	special monthDays // of the day of the month; from1 is mask
	nth     uint64    // of the day of the week, as in weekDays
}

// add puts in the values from, from+step … up to and including to.
func (v *values) add(from, to, step int) {
	for ; from <= to; from += step {
		if from >= minYear {
			v.years.add(from)
		} else {
			v.mask |= 1 << from
		}
	}
}

// parse reads a field. Seed is what H hashes.
func (f *field) parse(w word, seed string) (values, *ParseError) {
	var v values
	if w.text[0] == '*' || w.text[0] == '?' {
		v.star = 1
	}
	for rest, more, at := w, true, 0; more; at++ {
		var item word
		item, rest, more = rest.cut(",")
		step, fault := f.item(item, seed, &v)
		if fault != nil {
			fault.Field = f.name
			return values{}, fault
		}
		if at == 0 && v.star != 0 {
			v.star = step
		}
	}
	if f.kind == dayOfWeek {
		v.mask = v.mask&(1<<7-1) | v.mask>>7
	}
	return v, nil
}

// item reads one element of the list and gives its step.
func (f *field) item(w word, seed string, v *values) (int, *ParseError) {
	if f.kind == dayOfMonth && isMonthDay(w.text) {
		return 0, f.monthDay(w, v)
	}
	if f.kind == dayOfWeek && isNthDay(w.text) {
		return 0, f.nthDay(w, v)
	}
	body, stepWord, stepped := w.cut("/")
	step := 1
	if stepped {
		var fault *ParseError
		if step, fault = f.step(stepWord); fault != nil {
			return 0, fault
		}
	}
	if isHash(body.text) {
		return step, f.hash(body, seed, step, stepped, v)
	}
	from, to, fault := f.span(body, stepped)
	if fault == nil {
		v.add(from, to, step)
	}
	return step, fault
}

// span reads the part of an item before its step.
func (f *field) span(w word, stepped bool) (from, to int, fault *ParseError) {
	if w.text == "*" || w.text == "?" {
		return f.min, f.max, nil
	}
	low, high, ranged := w.cut("-")
	if from, fault = f.value(low); fault != nil {
		return 0, 0, fault
	}
	switch {
	case !ranged && stepped:
		return from, max(from, f.max), nil
	case !ranged:
		return from, from, nil
	}
	return f.ends(w, low, high, "-")
}

// ends reads the ends of the range w, which have a word between them.
func (f *field) ends(w, low, high word, between string) (from, to int, fault *ParseError) {
	if from, fault = f.value(low); fault != nil {
		return 0, 0, fault
	}
	if to, fault = f.value(high); fault != nil {
		return 0, 0, fault
	}
	if f.kind == dayOfWeek {
		from, to = weekdays(from, to)
	}
	if to < from {
		return 0, 0, w.fault(fmt.Sprintf("the range %s runs backwards", w.text),
			fmt.Sprintf("write it as two, %s%s%d,%d%s%s", low.text, between, f.max, f.min, between, high.text))
	}
	return from, to, nil
}

// weekdays chooses the number of a Sunday at either end of a range so that
// fri-sun and 7-2 run forwards.
func weekdays(from, to int) (int, int) {
	switch {
	case to == 0 && from > 0:
		return from, 7
	case from == 7 && to < 7:
		return 0, to
	}
	return from, to
}

// last is the largest value that may be written.
func (f *field) last() int {
	if f.kind == dayOfWeek {
		return f.max + 1
	}
	return f.max
}

// step reads what follows a slash.
func (f *field) step(w word) (int, *ParseError) {
	most := f.max
	if f.min == minYear {
		most -= f.min
	}
	step, ok := number(w.text)
	if !ok || step < 1 || step > most {
		return 0, w.fault(fmt.Sprintf("%q is not a step", w.text), fmt.Sprintf("steps are 1 to %d", most))
	}
	return step, nil
}

// value reads a number or a name.
func (f *field) value(w word) (int, *ParseError) {
	if v, ok := number(w.text); ok {
		if v < f.min || v > f.last() {
			return 0, w.fault(w.text+" is out of range", f.allowed())
		}
		return v, nil
	}
	if v, ok := f.named(w.text); ok {
		return v, nil
	}
	return 0, w.fault(fmt.Sprintf("%q is not a value", w.text), f.hint(w.text))
}

func (f *field) named(s string) (int, bool) {
	for i, name := range strings.Fields(f.names) {
		if strings.EqualFold(s, name) {
			return f.min + i, true
		}
	}
	return 0, false
}

func (f *field) allowed() string {
	s := fmt.Sprintf("%s is %d to %d", f.name, f.min, f.last())
	if f.names != "" {
		s += " or " + f.names[:3] + " to " + f.names[len(f.names)-3:]
	}
	return s
}

// hint states what to do about something that is not a value.
func (f *field) hint(s string) string {
	if len(s) > 3 {
		if v, ok := f.named(s[:3]); ok {
			return fmt.Sprintf("names have three letters, write %s; or write %d", strings.ToLower(s[:3]), v)
		}
	}
	switch {
	case f.kind == calendarPart && f.name == "day of month":
		return f.allowed() + "; ~01 is the last day, ~02 the one before"
	case f.kind == calendarPart:
		return f.allowed()
	case isNthDay(s):
		return "# and L after a day are for the day of week; " + f.allowed()
	case isMonthDay(s) && f.kind == dayOfWeek:
		return "the last Friday of the month is fri#L; " + f.allowed()
	case isMonthDay(s):
		return "L and W are for the day of month; " + f.allowed()
	}
	return f.allowed()
}
