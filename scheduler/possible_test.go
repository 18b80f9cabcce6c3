package scheduler

import (
	"math/rand/v2"
	"testing"
)

// randomDays is a pattern with few days, so that many have none at all.
func randomDays(r *rand.Rand) pattern {
	mask := func(n int, most int) (m uint64) {
		for range 1 + r.IntN(most) {
			m |= 1 << (1 + r.IntN(n))
		}
		return m
	}
	p := pattern{month: mask(12, 2)}
	switch r.IntN(3) {
	case 0:
		p.days.from1 = mask(31, 2)
	case 1:
		p.days.fromEnd = mask(30, 2)
	default:
		p.days.nearest = mask(31, 2)
	}
	switch r.IntN(3) {
	case 0:
		p.week.each = 1<<7 - 1
	case 1:
		p.week.each = mask(6, 1)
	default:
		p.week.nth = 1 << (8*(1+r.IntN(lastOfMonth)) + r.IntN(7))
	}
	if r.IntN(3) == 0 {
		p.years = new(years)
		for range 1 + r.IntN(3) {
			p.years.add(minYear + r.IntN(maxYear-minYear+1))
		}
	}
	return p
}

// TestSearchesLeaveNothingOut compares searches, which look at one year of each kind,
// with a look at each month. Most of the patterns match in some years only, or never.
func TestSearchesLeaveNothingOut(t *testing.T) {
	r := rand.New(rand.NewPCG(14, 16))
	never := 0
	for range 2000 {
		p := randomDays(r)
		from := firstOfMonth(firstYear+r.Int64N(finalYear-firstYear), 1+r.IntN(12)) + r.Int64N(28)
		want, wantBack := plainDays(&p, from)
		if got, ok := p.nextDay(from); ok != (want != noDay) || ok && got != want {
			t.Fatalf("next of %+v from %d: %d, %v, not %d", p, from, got, ok, want)
		}
		if got, ok := p.prevDay(from); ok != (wantBack != noDay) || ok && got != wantBack {
			t.Fatalf("prev of %+v from %d: %d, %v, not %d", p, from, got, ok, wantBack)
		}
		if want == noDay {
			never++
		}
	}
	if never < 200 {
		t.Errorf("%d patterns without a day are too few", never)
	}
}

const noDay = -1 << 62

// plainDays looks at each month for the last match up to a day and the first from it.
func plainDays(p *pattern, from int64) (next, prev int64) {
	next, prev = noDay, noDay
	for year := int64(firstYear); year <= finalYear; year++ {
		if p.years != nil && !p.years.has(year) {
			continue
		}
		for month := 1; month <= 12; month++ {
			if p.month>>month&1 == 0 {
				continue
			}
			start := firstOfMonth(year, month)
			for days := p.matching(start, monthLength(year, month)); days != 0; days &= days - 1 {
				day := start + int64(first(days)) - 1
				if day <= from {
					prev = day
				}
				if day >= from {
					return day, prev
				}
			}
		}
	}
	return noDay, prev
}

// TestSearchesAreShort counts the years that a search goes through.
func TestSearchesAreShort(t *testing.T) {
	var seen yearKinds
	looked := 0
	for year := int64(firstYear); year <= finalYear; year++ {
		if seen.first(year) {
			looked++
		}
	}
	if looked != 14 {
		t.Errorf("a search goes through %d years", looked)
	}
}
