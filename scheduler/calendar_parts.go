package scheduler

import (
	"fmt"
	"strings"
)

// dateAndTime is the parts of a date and a time; the one of atWeekday is empty.
type dateAndTime [fieldCount]word

// calendarParts reads what is left when zones and short forms are gone.
func calendarParts(words []word) (all [fieldCount]values, fault *ParseError) {
	parts := dateAndTime{
		atYear: {text: "*"}, atMonth: {text: "*"}, atDay: {text: "*"},
		atHour: {text: "0"}, atMinute: {text: "0"}, atSecond: {text: "0"},
	}
	all[atWeekday].mask = 1<<7 - 1
	rest := words
	if c := rest[0].text[0] | ' '; c >= 'a' && c <= 'z' {
		if all[atWeekday], fault = calendarWeek(rest[0]); fault != nil {
			return all, fault
		}
		rest = rest[1:]
	}
	if len(rest) > 0 && !strings.Contains(rest[0].text, ":") {
		if fault = calendarDate(rest[0], &parts); fault != nil {
			return all, fault
		}
		rest = rest[1:]
	}
	if len(rest) > 0 {
		if fault = calendarTime(rest[0], &parts); fault != nil {
			return all, fault
		}
		rest = rest[1:]
	}
	if len(rest) > 0 {
		return all, rest[0].fault(fmt.Sprintf("%q is one too many", rest[0].text), hintCalendar)
	}
	fields := fieldTable()
	fields[atMonth].names = ""
	for i, w := range parts {
		if i == atWeekday {
			continue
		}
		fields[i].kind = calendarPart
		if all[i], fault = fields[i].component(w, i == atDay); fault != nil {
			fault.Field = fields[i].name
			return all, fault
		}
	}
	return all, nil
}

// calendarDate takes a date apart.
func calendarDate(w word, parts *dateAndTime) *ParseError {
	head, day := w, strings.LastIndexByte(w.text, '~')
	if day < 0 {
		day = strings.LastIndexByte(w.text, '-') + 1
		head = w.to(max(day-1, 0))
	} else {
		head = w.to(len(strings.TrimSuffix(w.text[:day], "-")))
	}
	month := strings.LastIndexByte(head.text, '-') + 1
	if day == 0 || head.text == "" {
		return w.fault(fmt.Sprintf("%q is neither a date nor a time", w.text), hintCalendar)
	}
	parts[atDay], parts[atMonth] = w.from(day), head.from(month)
	if month > 0 {
		parts[atYear] = head.to(month - 1)
	}
	return nil
}

// calendarTime takes a time apart.
func calendarTime(w word, parts *dateAndTime) *ParseError {
	hour, rest, ok := w.cut(":")
	if !ok {
		return w.fault(fmt.Sprintf("%q is not a time", w.text), "write hour, minute and second as 09:00 or 09:00:30")
	}
	minute, second, ok := rest.cut(":")
	parts[atHour], parts[atMinute] = hour, minute
	if ok {
		parts[atSecond] = second
	}
	return nil
}

// component reads a part of a date or a time. A day may count from the month's
// end.
func (f *field) component(w word, day bool) (values, *ParseError) {
	var v values
	if w.text == "*" {
		v.star = 1
		v.add(f.min, f.max, 1)
		return v, nil
	}
	fromEnd := day && strings.HasPrefix(w.text, "~")
	rest := w
	if fromEnd {
		rest = w.from(1)
	}
	for at, more := 0, true; more; at++ {
		var item word
		item, rest, more = rest.cut(",")
		span, fault := f.series(item)
		if fault != nil {
			return values{}, fault
		}
		if fromEnd {
			if span.open {
				span.from, span.to = f.min, span.from
			}
			for n := span.to; n >= span.from; n -= span.step {
				v.special.fromEnd |= 1 << (n - 1)
			}
			continue
		}
		if at == 0 && span.open && span.from == f.min {
			v.star = span.step
		}
		v.add(span.from, span.to, span.step)
	}
	return v, nil
}

// series is every step-th number between two; open when it was written without an
// end.
type series struct {
	from, to, step int
	open           bool
}

// series reads one element of a list: a value, a range or either with a step.
func (f *field) series(w word) (series, *ParseError) {
	body, stepWord, stepped := w.cut("/")
	if body.text == "*" {
		return series{}, w.fault(fmt.Sprintf("%q is not a value", w.text), fmt.Sprintf("* is not combined with other values; with a step write %d/%s", f.min, stepWord.text))
	}
	s := series{step: 1}
	low, high, ranged := body.cut("..")
	var fault *ParseError
	if stepped {
		if s.step, fault = f.step(stepWord); fault != nil {
			return s, fault
		}
	}
	if ranged {
		s.from, s.to, fault = f.ends(body, low, high, "..")
		return s, fault
	}
	s.from, fault = f.value(body)
	s.to, s.open = s.from, stepped
	if stepped {
		s.to = f.max
	}
	return s, fault
}

var longWeekdays = [...]string{"Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"}

// calendarWeek reads days of the week. The week starts on Monday, 1.
func calendarWeek(w word) (values, *ParseError) {
	var v values
	for rest, more := w, true; more; {
		var item word
		item, rest, more = rest.cut(",")
		low, high, ranged := item.cut("..")
		if !ranged {
			high = low
		}
		from, fault := calendarWeekday(low)
		if fault != nil {
			return v, fault
		}
		to, fault := calendarWeekday(high)
		if fault != nil {
			return v, fault
		}
		if to < from {
			fault = item.fault(fmt.Sprintf("the range %s runs backwards", item.text), fmt.Sprintf("the week starts on Monday, write it as two, %s..Sun,Mon..%s", low.text, high.text))
			fault.Field = "day of week"
			return v, fault
		}
		v.add(from, to, 1)
	}
	v.mask = v.mask&(1<<7-1) | v.mask>>7
	return v, nil
}

func calendarWeekday(w word) (int, *ParseError) {
	for i, name := range longWeekdays {
		if strings.EqualFold(w.text, name) || strings.EqualFold(w.text, name[:3]) {
			return i + 1, nil
		}
	}
	fault := w.fault(fmt.Sprintf("%q is not a day of the week", w.text), "days are Mon to Sun, ranges Mon..Fri; or start with a short form such as daily")
	fault.Field = "day of week"
	return 0, fault
}

// calendarText is the canonical expression of all parts.
func calendarText(all *[fieldCount]values) string {
	fields := fieldTable()
	part := func(i int) string { return fields[i].calendarText(&all[i]) }
	day := "-" + part(atDay)
	if all[atDay].special.fromEnd != 0 {
		day = "-~" + fields[atDay].calendarText(&values{mask: all[atDay].special.fromEnd << 1})
	}
	text := fmt.Sprintf("%s-%s%s %s:%s:%s", part(atYear), part(atMonth), day, part(atHour), part(atMinute), part(atSecond))
	if all[atWeekday].mask != 1<<7-1 {
		text = weekText(all[atWeekday].mask) + " " + text
	}
	return text
}

func (f *field) calendarText(v *values) string {
	if v.star == 1 {
		return "*"
	}
	var items []string
	rest := v.numbers()
	if v.star > 1 {
		items = append(items, fmt.Sprintf("%02d/%d", f.min, v.star))
		rest = without(rest, f.min, v.star)
	}
	return strings.Join(append(items, ranges(rest, "..", 2)...), ",")
}

func weekText(mask uint64) string {
	var days []int
	for i := range longWeekdays {
		if mask>>((i+1)%7)&1 == 1 {
			days = append(days, i)
		}
	}
	var items []string
	for i := 0; i < len(days); {
		item, length := longWeekdays[days[i]][:3], runLength(days[i:])
		if length < 3 {
			length = 1
		} else {
			item += ".." + longWeekdays[days[i+length-1]][:3]
		}
		items = append(items, item)
		i += length
	}
	return strings.Join(items, ",")
}
