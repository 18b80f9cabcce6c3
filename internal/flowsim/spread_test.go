package flowsim

import (
	"fmt"
	"testing"
	"time"
)

func TestSpread(t *testing.T) {
	t.Parallel()
	var all []time.Duration
	for i := range 100 {
		all = append(all, time.Duration(100-i)*time.Millisecond)
	}
	s := newSpread(all)
	if got := fmt.Sprint(s.N, s.Min, s.P50, s.P90, s.P99, s.Max, s.Mean); got != "100 1ms 50ms 90ms 99ms 100ms 50.5ms" {
		t.Error(got)
	}
	if one := newSpread([]time.Duration{time.Second}); one.P50 != time.Second || one.P99 != time.Second || len(one.Bins) != 1 || one.Bins[0].N != 1 {
		t.Errorf("of one: %+v", one)
	}
	if none := newSpread(nil); none.N != 0 || none.Bins != nil {
		t.Errorf("of none: %+v", none)
	}
}

func TestBins(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		least, most, from, width time.Duration
		bins                     int
	}{
		{5 * time.Millisecond, 27 * time.Millisecond, 5 * time.Millisecond, 5 * time.Millisecond, 5},
		{0, 0, 0, time.Microsecond, 1},
		{time.Second, 61 * time.Second, 0, 10 * time.Second, 7},
		{time.Hour, 12 * time.Hour, 0, 2 * time.Hour, 7},
		{0, 3000 * time.Hour, 0, 480 * time.Hour, 7},
	} {
		all := []time.Duration{c.least, c.least, c.most}
		got := bins(all)
		n := 0
		for i, b := range got {
			n += b.N
			if b.To-b.From != got[0].To-got[0].From || i > 0 && b.From != got[i-1].To {
				t.Errorf("%s to %s: %v", c.least, c.most, got)
			}
		}
		if n != 3 || len(got) > maxBins || len(got) != c.bins || got[0].From != c.from || got[0].To-c.from != c.width || got[len(got)-1].N == 0 {
			t.Errorf("%s to %s: %v", c.least, c.most, got)
		}
	}
}
