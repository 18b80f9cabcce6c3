package scheduler

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"time"
)

// face is what a local clock and calendar show.
type face struct {
	second, minute, hour, day, month, year int
	weekday, length                        int // length is that of the month
}

func faceOf(local int64) face {
	t := time.Unix(local, 0).UTC()
	year, month, day := t.Date()
	hour, minute, second := t.Clock()
	length := 31
	if day < 31 {
		_, _, length = time.Date(year, month+1, 0, 0, 0, 0, 0, time.UTC).Date()
	}
	return face{second, minute, hour, day, int(month), year, int(t.Weekday()), length}
}

// meaning is an expression as predicates, each as plain as can be.
type meaning struct {
	cron, calendar               string // calendar is empty when it cannot say it
	second, minute, hour, months func(int) bool
	day, weekday                 func(*face) bool
	year                         func(int) bool
	either, elapsed              bool
}

func (m *meaning) matches(f *face) bool {
	if !m.second(f.second) || !m.minute(f.minute) || !m.hour(f.hour) || !m.months(f.month) || !m.year(f.year) {
		return false
	}
	if m.either {
		return m.day(f) || m.weekday(f)
	}
	return m.day(f) && m.weekday(f)
}

// item is a field of an expression in both notations.
type item struct {
	cron, calendar string
	star           bool
	has            func(int) bool
}

// randomItem restricts the field in often of 7 cases. Small values, where the
// changes are, are more likely.
func randomItem(rnd *rand.Rand, low, high, often int) item {
	if rnd.IntN(7) >= often {
		return item{"*", "*", true, func(int) bool { return true }}
	}
	value := func() int { return low + min(rnd.IntN(high-low+1), rnd.IntN(high-low+1), rnd.IntN(high-low+1)) }
	from, to, step := value(), value(), 1+rnd.IntN(high/2)
	from, to = min(from, to), max(from, to)
	switch rnd.IntN(6) {
	case 0:
		return item{fmt.Sprintf("*/%d", step), fmt.Sprintf("%d/%d", low, step), true, func(v int) bool { return (v-low)%step == 0 }}
	case 1:
		return item{fmt.Sprintf("%d-%d", from, to), fmt.Sprintf("%d..%d", from, to), false, func(v int) bool { return from <= v && v <= to }}
	case 2:
		return item{fmt.Sprintf("%d-%d/%d", from, to, step), fmt.Sprintf("%d..%d/%d", from, to, step), false,
			func(v int) bool { return from <= v && v <= to && (v-from)%step == 0 }}
	case 3:
		from = max(from, low+1) // in a calendar, a step from the least value is a star
		return item{fmt.Sprintf("%d/%d", from, step), fmt.Sprintf("%d/%d", from, step), false, func(v int) bool { return v >= from && (v-from)%step == 0 }}
	case 4:
		return item{fmt.Sprintf("%d,%d", to, from), fmt.Sprintf("%d,%d", to, from), false, func(v int) bool { return v == from || v == to }}
	}
	return item{fmt.Sprint(from), fmt.Sprint(from), false, func(v int) bool { return v == from }}
}

// randomMeaning is an expression. Around is a day near which it is good to fire.
func randomMeaning(rnd *rand.Rand, around face, seconds bool) *meaning {
	second := item{"0", "0", false, func(v int) bool { return v == 0 }}
	if seconds {
		second = randomItem(rnd, 0, 59, 5)
	}
	minute, hour := randomItem(rnd, 0, 59, 6), randomItem(rnd, 0, 23, 4)
	month := item{"*", "*", true, func(int) bool { return true }}
	if rnd.IntN(4) == 0 {
		month = item{fmt.Sprintf("%d", around.month), fmt.Sprintf("%d", around.month), false, func(v int) bool { return v == around.month }}
	}
	m := &meaning{second: second.has, minute: minute.has, hour: hour.has, months: month.has, elapsed: minute.star || hour.star}
	day, calendarDay := m.randomDay(rnd, around)
	weekday, calendarWeekday := m.randomWeekday(rnd)
	m.either = day[0] != '*' && weekday[0] != '*'
	m.year = func(int) bool { return true }
	words := []string{second.cron, minute.cron, hour.cron, day, month.cron, weekday}
	year := "*"
	if rnd.IntN(8) == 0 {
		m.year = func(v int) bool { return v == around.year }
		year = fmt.Sprint(around.year)
		words = append(words, year)
	}
	m.cron = strings.Join(words, " ")
	if calendarDay != "" && calendarWeekday != "none" {
		m.calendar = fmt.Sprintf("%s%s-%s-%s %s:%s:%s", calendarWeekday, year, month.calendar, calendarDay, hour.calendar, minute.calendar, second.calendar)
	}
	return m
}

// randomDay is a field for the day of the month in both notations.
func (m *meaning) randomDay(rnd *rand.Rand, around face) (cron, calendar string) {
	n := 1 + rnd.IntN(31)
	switch rnd.IntN(12) {
	case 0:
		n = around.length - around.day
		m.day = func(f *face) bool { return f.day == f.length-n }
		if n == 0 {
			return "L", "~01"
		}
		return fmt.Sprintf("L-%d", n), fmt.Sprintf("~%d", n+1)
	case 1:
		n = around.day
		m.day = func(f *face) bool { return f.day == workday(n, f) }
		return fmt.Sprintf("%dW", n), ""
	case 2:
		m.day = func(f *face) bool {
			last := f.length
			for at := (f.weekday + last - f.day) % 7; at == 0 || at == 6; at = (at + 6) % 7 {
				last--
			}
			return f.day == last
		}
		return "LW", ""
	case 3:
		m.day = func(f *face) bool { return f.day == n || f.day == around.day }
		return fmt.Sprintf("%d,%d", n, around.day), fmt.Sprintf("%d,%d", n, around.day)
	case 4:
		return m.plainDay(randomItem(rnd, 1, 31, 7))
	}
	return m.plainDay(item{"*", "*", true, func(int) bool { return true }})
}

func (m *meaning) plainDay(i item) (cron, calendar string) {
	m.day = func(f *face) bool { return i.has(f.day) }
	return i.cron, i.calendar
}

// workday is the day from Monday to Friday nearest to day n of the month, 0 when
// the month has no such day.
func workday(n int, f *face) int {
	for _, d := range []int{n, n - 1, n + 1, n - 2, n + 2} {
		at := ((f.weekday+d-f.day)%7 + 7) % 7
		if n <= f.length && d >= 1 && d <= f.length && at != 0 && at != 6 {
			return d
		}
	}
	return 0
}

// randomWeekday is a field for the day of the week in both notations.
func (m *meaning) randomWeekday(rnd *rand.Rand) (cron, calendar string) {
	d, k := rnd.IntN(7), 1+rnd.IntN(5)
	name := time.Weekday(d).String()[:3]
	switch rnd.IntN(10) {
	case 0:
		m.weekday = func(f *face) bool { return f.weekday == d }
		return name, name + " "
	case 1:
		m.weekday = func(f *face) bool { return f.weekday >= 1 && f.weekday <= 5 }
		return "mon-fri", "Mon..Fri "
	case 2:
		m.weekday = func(f *face) bool { return f.weekday == d && (f.day-1)/7+1 == k }
		return fmt.Sprintf("%s#%d", name, k), "none"
	case 3:
		m.weekday = func(f *face) bool { return f.weekday == d && f.day+7 > f.length }
		return fmt.Sprintf("%d#L", d), "none"
	}
	m.weekday = func(*face) bool { return true }
	return "*", ""
}
