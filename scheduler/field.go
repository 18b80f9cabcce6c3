package scheduler

import (
	"fmt"
	"strconv"
	"strings"
)

// word is a part of an expression and the byte at which it starts.
type word struct {
	text   string
	offset int
}

// star reports whether the word, a field, starts with "all".
func (w word) star() bool { return w.text[0] == '*' || w.text[0] == '?' }

// cut is strings.Cut on words.
func (w word) cut(sep string) (before, after word, ok bool) {
	i := strings.Index(w.text, sep)
	if i < 0 {
		return w, word{}, false
	}
	return word{w.text[:i], w.offset}, word{w.text[i+len(sep):], w.offset + i + len(sep)}, true
}

// split gives the words between any of the separators, without empty ones.
func split(s, separators string) []word {
	var words []word
	start := 0
	for i := 0; i <= len(s); i++ {
		if i < len(s) && strings.IndexByte(separators, s[i]) < 0 {
			continue
		}
		if i > start {
			words = append(words, word{s[start:i], start})
		}
		start = i + 1
	}
	return words
}

// field is what a field of an expression may hold.
type field struct {
	name     string
	min, max int
	names    string // of the values from min on, three letters each
	sunday   bool   // the day of week: max+1 is another word for min
}

// parse gives the mask of the field's values. In the day of week, bit 7 is
// Sunday too.
func (f field) parse(w word) (uint64, *ParseError) {
	var mask uint64
	for rest, more := w, true; more; {
		var item word
		item, rest, more = rest.cut(",")
		values, fault := f.item(item)
		if fault != nil {
			return 0, fault
		}
		mask |= values
	}
	return mask, nil
}

// item reads one element of the list: a value, a range or all, with a step.
func (f field) item(w word) (uint64, *ParseError) {
	span, stepWord, stepped := w.cut("/")
	from, to, fault := f.span(span, stepped)
	if fault != nil {
		return 0, fault
	}
	step := 1
	if stepped {
		if step, fault = f.step(stepWord); fault != nil {
			return 0, fault
		}
	}
	var mask uint64
	for v := from; v <= to; v += step {
		mask |= 1 << v
	}
	return mask, nil
}

// span reads the part of an item before its step.
func (f field) span(w word, stepped bool) (from, to int, fault *ParseError) {
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
	if to, fault = f.value(high); fault != nil {
		return 0, 0, fault
	}
	if f.sunday {
		from, to = weekdays(from, to)
	}
	if to < from {
		return 0, 0, &ParseError{Offset: w.offset, Reason: fmt.Sprintf("the range %s runs backwards", w.text),
			Hint: fmt.Sprintf("write it as two, %s-%d,%d-%s", low.text, f.max, f.min, high.text)}
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
func (f field) last() int {
	if f.sunday {
		return f.max + 1
	}
	return f.max
}

// step reads what follows a slash.
func (f field) step(w word) (int, *ParseError) {
	step, ok := number(w.text)
	if !ok || step < 1 || step > f.max {
		return 0, &ParseError{Offset: w.offset, Reason: fmt.Sprintf("%q is not a step", w.text),
			Hint: fmt.Sprintf("steps are 1 to %d", f.max)}
	}
	return step, nil
}

// value reads a number or a name.
func (f field) value(w word) (int, *ParseError) {
	if v, ok := number(w.text); ok {
		if v < f.min || v > f.last() {
			return 0, &ParseError{Offset: w.offset, Reason: w.text + " is out of range", Hint: f.allowed()}
		}
		return v, nil
	}
	if v, ok := f.named(w.text); ok {
		return v, nil
	}
	return 0, &ParseError{Offset: w.offset, Reason: fmt.Sprintf("%q is not a value", w.text), Hint: f.hint(w.text)}
}

// number reads up to four digits: no value is longer, and none overflows.
func number(s string) (int, bool) {
	if len(s) > 4 {
		return 0, false
	}
	v, err := strconv.ParseUint(s, 10, 16)
	return int(v), err == nil
}

func (f field) named(s string) (int, bool) {
	for i, name := range strings.Fields(f.names) {
		if strings.EqualFold(s, name) {
			return f.min + i, true
		}
	}
	return 0, false
}

func (f field) allowed() string {
	s := fmt.Sprintf("%s is %d to %d", f.name, f.min, f.last())
	if f.names != "" {
		s += " or " + f.names[:3] + " to " + f.names[len(f.names)-3:]
	}
	return s
}

// hint says what to do about something that is not a value.
func (f field) hint(s string) string {
	if len(s) > 3 {
		if v, ok := f.named(s[:3]); ok {
			return fmt.Sprintf("names have three letters; or write %d", v)
		}
	}
	if special(strings.ToUpper(s)) {
		return "L, W, # and H are not supported; " + f.allowed()
	}
	return f.allowed()
}

// special reports whether s is one of the forms of other dialects: L, LW, 15W,
// 5L, 5#2, H, H(0-29).
func special(s string) bool {
	switch {
	case s == "":
		return false
	case s == "H", s == "L", s == "W", s == "LW", strings.HasPrefix(s, "H("), strings.Contains(s, "#"):
		return true
	}
	_, err := strconv.ParseUint(s[:len(s)-1], 10, 16)
	return err == nil && strings.HasSuffix(s, "L") || err == nil && strings.HasSuffix(s, "W")
}
