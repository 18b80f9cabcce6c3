package engine

import (
	"fmt"
	"testing"

	"github.com/flowhost/flowhost/flows"
)

// BenchmarkReadyQueue takes a task out, ends it and puts another one in. What is
// blocked are the tasks of so many flows, all behind one limit that is used up.
func BenchmarkReadyQueue(b *testing.B) {
	for _, flowCount := range []int{1, 100} {
		for _, blocked := range []int{0, 1000} {
			b.Run(fmt.Sprintf("flows=%d/blocked=%d", flowCount, blocked), func(b *testing.B) {
				var r readyQueue
				full := []*quota{{limit: &flows.Limit{Concurrency: 1}, held: 1}}
				for i := range blocked {
					r.push(queued(fmt.Sprint("blocked", i), 0, "t"), full)
				}
				for i := range flowCount {
					r.push(queued(fmt.Sprint("f", i), 0, "t"), nil)
				}
				b.ReportAllocs()
				for b.Loop() {
					t, ok := r.pop(6)
					if !ok {
						b.Fatal("nothing may start")
					}
					r.done(t.run.Flow, nil)
					r.push(t, nil)
				}
			})
		}
	}
}
