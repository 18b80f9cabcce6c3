package host

import (
	"math/rand/v2"
	"testing"
)

// runMeter lets a guest that spends so many units at a time run on a meter until
// it is done or stopped, and gives what it has used. Its memory is as large as
// memory says, each time it is asked.
func runMeter(m *meter, steps []int64, memory func() int) (used int64, stopped bool) {
	left := m.first(memory())
	for _, cost := range steps {
		left -= cost
		if left >= 0 {
			continue
		}
		grant, ok := m.next(left, memory())
		if !ok {
			return m.total(0), true
		}
		left = grant
	}
	return m.total(left), false
}

// How much a guest uses, and where its fuel ends, does not depend on how it is
// granted.
func TestMeterCountsTheSameForAllGrants(t *testing.T) {
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
		for i, memory := range []func() int{
			func() int { return 0 },
			func() int { return 1 << 30 },
			func() int { return random.IntN(16 << 20) },
		} {
			used[i], stopped[i] = runMeter(&meter{limit: limit}, steps, memory)
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
