package scheduler

import "math/bits"

// monthDays are the days of the month in an expression.
type monthDays struct {
	from1   uint64 // bit n: day n
	fromEnd uint64 // bit n: n days before the last
	nearest uint64 // bit n: the day from Monday to Friday nearest to day n; bit 0: the last such day
}

// in is the mask of the days of a month that match. Day 1 has the given weekday.
// Days past the month's end may be in it.
func (d *monthDays) in(weekday, length int) uint64 {
	days := d.from1
	if d.fromEnd != 0 {
		days |= bits.Reverse64(d.fromEnd) >> (63 - length)
	}
	for rest := d.nearest; rest != 0; rest &= rest - 1 {
		days |= 1 << nearest(first(rest), weekday, length)
	}
	return days
}

// nearest is the day from Monday to Friday that is nearest to a day of a month
// and within it; day 0 is the last such day. A day that the month does not have
// gives itself.
func nearest(day, weekday, length int) int {
	switch on := (weekday + day - 1) % 7; {
	case day == 0:
		switch (weekday + length - 1) % 7 {
		case 0:
			return length - 2
		case 6:
			return length - 1
		}
		return length
	case day > length:
		return day
	case on == 6 && day > 1:
		return day - 1
	case on == 6:
		return 3
	case on == 0 && day < length:
		return day + 1
	case on == 0:
		return length - 2
	}
	return day
}

// weekDays are the days of the week in an expression; weekdays count from
// Sunday, 0.
type weekDays struct {
	each uint64 // bit n: each weekday n
	nth  uint64 // bit 8·k+n: the kth weekday n of the month, from 1; k 6 is the last one
}

const lastOfMonth = 6 // as k of weekDays.nth

// in is like that of monthDays.
func (d *weekDays) in(weekday, length int) uint64 {
	const weeks = 1 | 1<<7 | 1<<14 | 1<<21 | 1<<28
	week := (d.each>>weekday | d.each<<(7-weekday)) & (1<<7 - 1) // from the first of the month
	days := week * weeks << 1
	for rest := d.nth; rest != 0; rest &= rest - 1 {
		k, n := first(rest)/8, first(rest)%8
		day := 1 + (n-weekday+7)%7
		if k == lastOfMonth {
			days |= 1 << (day + (length-day)/7*7)
		} else {
			days |= 1 << (day + 7*(k-1))
		}
	}
	return days
}

// years is a set of the years from minYear to maxYear.
type years [(maxYear-minYear)/64 + 1]uint64

func (y *years) add(year int) { y[(year-minYear)/64] |= 1 << ((year - minYear) % 64) }

func (y *years) has(year int64) bool {
	i := year - minYear
	return i >= 0 && year <= maxYear && y[i/64]>>(i%64)&1 == 1
}

// next is the first of the years from a year on, past finalYear when there is
// none.
func (y *years) next(year int64) int64 {
	if y == nil {
		return year
	}
	for year = max(year, minYear); year <= maxYear && !y.has(year); {
		year++
	}
	if year > maxYear {
		return finalYear + 1
	}
	return year
}

// prev is the last of the years up to a year, before firstYear when there is
// none.
func (y *years) prev(year int64) int64 {
	if y == nil {
		return year
	}
	for year = min(year, maxYear); year >= minYear && !y.has(year); {
		year--
	}
	if year < minYear {
		return firstYear - 1
	}
	return year
}
