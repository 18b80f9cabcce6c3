package engine

import (
	"context"
	"strconv"
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

// BenchmarkGet gives the record of a run of 100 000 items: all but the last thousand are
// done, or each waits for its next attempt.
func BenchmarkGet(b *testing.B) {
	const items, open = 100_000, 1000
	set := load(b, "flow \"f\" {\n"+forEach("trigger.payload", `retry {
    attempts = 2
    delay    = "10h"
  }`)+"}\n")
	blocks := func(ctx context.Context, c run.Call) (run.Result, error) {
		if n, err := strconv.Atoi(c.Key); err == nil && n < items-open {
			return gives(c.Input), nil
		}
		<-ctx.Done()
		return run.Result{}, context.Cause(ctx)
	}
	fails := func(context.Context, run.Call) (run.Result, error) { return fails(run.OutcomeFailed, true), nil }
	for _, c := range []struct {
		name   string
		call   func(context.Context, run.Call) (run.Result, error)
		atRest run.ItemCounts
	}{
		{"done", blocks, run.ItemCounts{Total: items, Waiting: open - 8, Running: 8, Succeeded: items - open}},
		{"retrying", fails, run.ItemCounts{Total: items, Ready: items}},
	} {
		b.Run(c.name, func(b *testing.B) {
			r := boot(b, Config{Workers: 8, Invoker: guests{"t": c.call}}, set)
			id := r.submit("f", "["+strings.Repeat("0,", items-1)+"0]")
			for seen := uint64(0); ; {
				var record *run.Record
				if record, seen = r.watch(id, seen); record.Tasks[0].Counts != nil && *record.Tasks[0].Counts == c.atRest {
					break
				}
			}
			b.ReportAllocs()
			for b.Loop() {
				if _, err := r.Get(b.Context(), id); err != nil {
					b.Fatal(err)
				}
			}
			b.StopTimer()
			r.crash()
		})
	}
}
