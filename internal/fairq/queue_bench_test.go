package fairq

import (
	"fmt"
	"testing"
)

// BenchmarkQueue takes an item out, ends it and puts another one in. Blocked are
// the items of so many flows, all behind one limit that is used up.
func BenchmarkQueue(b *testing.B) {
	for _, flowCount := range []int{1, 100} {
		for _, blocked := range []int{0, 1000} {
			b.Run(fmt.Sprintf("flows=%d/blocked=%d", flowCount, blocked), func(b *testing.B) {
				var r Queue[item]
				full := []*Limit{{Max: 1, running: 1}}
				for i := range blocked {
					flow := fmt.Sprint("blocked", i)
					r.Push(item{flow, 0, "t"}, flow, 0, full)
				}
				for i := range flowCount {
					flow := fmt.Sprint("f", i)
					r.Push(item{flow, 0, "t"}, flow, 0, nil)
				}
				b.ReportAllocs()
				for b.Loop() {
					t, _, ok := r.Pop(below(&r, 6))
					if !ok {
						b.Fatal("nothing may start")
					}
					r.Done(t.flow, nil)
					r.Push(t, t.flow, 0, nil)
				}
			})
		}
	}
}
