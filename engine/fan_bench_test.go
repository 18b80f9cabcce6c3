package engine

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/flowhost/flowhost/run"
)

// BenchmarkFailingItems ends a fan-out of 2 000 items that are all under way and
// all fail, while about 10 000 tasks of other runs are ready and find no worker.
func BenchmarkFailingItems(b *testing.B) {
	const items, others = 2000, 10_000
	set := load(b, "flow \"f\" {\n"+forEach("trigger.payload", "max_parallel = 2000")+"}\nflow \"g\" {\n task \"other\" {\n  plugin = \"./m.wasm\"\n }\n}\n")
	for b.Loop() {
		b.StopTimer()
		var begun atomic.Int32
		all, fail := make(chan struct{}), make(chan struct{})
		failing := func(_ context.Context, _ run.Call) (run.Result, error) {
			if begun.Add(1) == items {
				close(all)
			}
			<-fail
			return fails(run.OutcomeFailed, false), nil
		}
		blocked := func(ctx context.Context, _ run.Call) (run.Result, error) {
			<-ctx.Done()
			return run.Result{}, context.Cause(ctx)
		}
		// A flow may have three quarters of the workers: those of the items, and no more.
		r := boot(b, Config{Workers: items * 4 / 3, Invoker: guests{"t": failing, "other": blocked}}, set)
		id := r.submit("f", "["+strings.Repeat("0,", items-1)+"0]")
		<-all
		for range others {
			r.submit("g", `[]`)
		}
		b.StartTimer()
		close(fail)
		record := r.wait(id)
		b.StopTimer()
		if record.State != run.Failed {
			b.Fatalf("the run is %s: %v", record.State, record.Error)
		}
		r.crash()
		b.StartTimer()
	}
}
