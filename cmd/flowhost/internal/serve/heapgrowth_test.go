package serve

import (
	"runtime"
	"testing"
)

func TestGrowthOfTheHeap(t *testing.T) {
	t.Parallel()
	for live, want := range map[uint64]int{
		0: 200, 1 << 20: 200, 100 << 20: 200, 160 << 20: 150, 200 << 20: 100, 399 << 20: 100, 1 << 30: 100, 1 << 40: 100,
	} {
		if got := growthOf(live); got != want {
			t.Errorf("the growth of %d MiB is %d, want %d", live>>20, got, want)
		}
	}
}

func TestAfterCollection(t *testing.T) {
	t.Parallel()
	calls := make(chan int)
	n := 0
	afterCollection(func() bool {
		n++
		calls <- n
		return n < 3
	})
	for want := 1; want <= 3; want++ {
		runtime.GC()
		if got := <-calls; got != want {
			t.Errorf("call %d, want %d", got, want)
		}
	}
}
