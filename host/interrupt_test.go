package host

import (
	"math/rand/v2"
	"testing"
	"time"
)

// runMeter lets a guest that spends so many units at a time run on a meter until
// it is done or stopped, and gives what it has used. Each unit takes so long.
func runMeter(m *meter, steps []int64, unit func() time.Duration) (used int64, stopped bool) {
	now := time.Unix(0, 0)
	left := m.first(now)
	for _, cost := range steps {
		left -= cost
		now = now.Add(time.Duration(cost) * unit())
		if left >= 0 {
			continue
		}
		grant, ok := m.next(left, now)
		if !ok {
			return m.total(0), true
		}
		left = grant
	}
	return m.total(left), false
}

// How much a guest uses, and where its fuel ends, does not depend on how fast the
// machine is.
func TestMeterCountsTheSameOnEveryMachine(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(1, 2))
	for range 200 {
		var steps []int64
		var sum int64
		for range 1 + random.IntN(2_000) {
			cost := 1 + random.Int64N(1<<random.IntN(16))
			steps, sum = append(steps, cost), sum+cost
		}
		limit := random.Int64N(2*sum) * random.Int64N(2)
		var used [3]int64
		var stopped [3]bool
		for i, unit := range []func() time.Duration{
			func() time.Duration { return 0 },
			func() time.Duration { return 40 },
			func() time.Duration { return time.Duration(random.IntN(5_000)) },
		} {
			used[i], stopped[i] = runMeter(&meter{limit: limit}, steps, unit)
		}
		if used[0] != used[1] || used[1] != used[2] || stopped[0] != stopped[1] || stopped[1] != stopped[2] {
			t.Fatalf("limit %d: used %v, stopped %v", limit, used, stopped)
		}
		if want := limit > 0 && sum > limit; stopped[0] != want {
			t.Fatalf("limit %d of %d units: stopped %v", limit, sum, stopped[0])
		}
		if !stopped[0] && used[0] != sum || stopped[0] && used[0] <= limit {
			t.Fatalf("limit %d of %d units: used %d", limit, sum, used[0])
		}
	}
}

// A grant lasts for about a slice, however long a unit takes.
func TestMeterGrantsASlice(t *testing.T) {
	t.Parallel()
	for _, unit := range []time.Duration{1, 10, 100} {
		m := &meter{}
		now := time.Unix(0, 0)
		grant := m.first(now)
		for range 5 {
			now = now.Add(time.Duration(grant) * unit)
			grant, _ = m.next(-1, now)
		}
		if took := time.Duration(grant) * unit; took < slice*9/10 || took > slice*11/10 {
			t.Errorf("units of %v: a grant lasts for %v", unit, took)
		}
	}
}
