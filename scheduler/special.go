package scheduler

import (
	"fmt"
	"strings"
)

// isMonthDay reports whether s looks like L, L-n, nW or LW.
func isMonthDay(s string) bool {
	return s != "" && (s[0]|' ' == 'l' || s[len(s)-1]|' ' == 'w')
}

const hintMonthDay = "there are L, L-3, 15W and LW: the last day of the month, the third before it, the weekday nearest to the 15th and the last weekday"

// monthDay reads what isMonthDay found.
func (f *field) monthDay(w word, v *values) *ParseError {
	text := strings.ToUpper(w.text)
	switch {
	case text == "L":
		v.special.fromEnd |= 1
		return nil
	case text == "LW":
		v.special.nearest |= 1
		return nil
	case strings.HasPrefix(text, "L-"):
		n, ok := number(text[2:])
		if !ok || n < 1 || n >= f.max {
			return w.from(2).fault(fmt.Sprintf("%q is not a number of days", w.text[2:]), fmt.Sprintf("L-n counts back from the last day, n is 1 to %d", f.max-1))
		}
		v.special.fromEnd |= 1 << n
		return nil
	case text[0] == 'L':
		return w.fault(fmt.Sprintf("%q is not a day", w.text), hintMonthDay)
	}
	day := w.to(len(w.text) - 1)
	if _, ok := number(day.text); !ok {
		return w.fault(fmt.Sprintf("%q is not a day", w.text), hintMonthDay)
	}
	n, fault := f.value(day)
	v.special.nearest |= 1 << n
	return fault
}

// isNthDay reports whether s looks like d#n, d#L or dL.
func isNthDay(s string) bool {
	return strings.Contains(s, "#") || len(s) > 1 && len(s) != 3 && s[0]|' ' != 'l' && s[len(s)-1]|' ' == 'l' ||
		len(s) == 3 && s[2]|' ' == 'l' && s[1] >= '0' && s[1] <= '9'
}

// nthDay reads what isNthDay found.
func (f *field) nthDay(w word, v *values) *ParseError {
	day, which, numbered := w.cut("#")
	if !numbered {
		day, which = w.to(len(w.text)-1), w.from(len(w.text)-1)
	}
	n, fault := f.value(day)
	if fault != nil {
		return fault
	}
	k, ok := number(which.text)
	if strings.EqualFold(which.text, "L") {
		k, ok = lastOfMonth, true
	} else if k > 5 {
		ok = false
	}
	if !ok || k < 1 {
		return which.fault(fmt.Sprintf("%q is not a week", which.text), "the second Friday is fri#2, up to fri#5; the last one is fri#L")
	}
	v.nth |= 1 << (8*k + n%7)
	return nil
}
