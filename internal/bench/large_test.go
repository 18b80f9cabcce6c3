package main

import (
	"context"
	"fmt"
	"runtime/metrics"
	"strings"
	"testing"
	"time"

	"github.com/flowhost/flowhost/engine"
	memjournal "github.com/flowhost/flowhost/engine/memory"
	"github.com/flowhost/flowhost/run"
)

// What large runs cost for each task, without wasm and in memory: a chain and a
// ladder of diamonds of 10 000 tasks, and fan-outs of up to 100 000 items, of which
// only as many as there is use for are under way. Read us/task, and the most heap that was
// in use, records, journal and garbage included, as MB-peak. BenchmarkEngine has the
// same for small runs.
func BenchmarkLargeRuns(b *testing.B) {
	for _, s := range []struct {
		name   string
		source string
		tasks  int
	}{
		{"chain=10000", chain(10_000), 10_000},
		{"diamonds=2500", diamonds(2_500), 7_501},
		{"fan-out=1000", items(1_000, ""), 1_000},
		{"fan-out=100000", items(100_000, ""), 100_000},
		{"fan-out=100000/max_parallel=8", items(100_000, "max_parallel = 8"), 100_000},
	} {
		b.Run(s.name, func(b *testing.B) { measureLarge(b, s.source, s.tasks) })
	}
}

// diamonds is a chain of diamonds: each has two sides that come together.
func diamonds(n int) string {
	var t strings.Builder
	t.WriteString("flow \"f\" {\n  task \"d0\" { plugin = \"./m.wasm\" }\n")
	for i := range n {
		for _, side := range []string{"l", "r"} {
			fmt.Fprintf(&t, "  task \"%s%d\" {\n    plugin = \"./m.wasm\"\n    input  = { n = task.d%d.output }\n  }\n", side, i, i)
		}
		fmt.Fprintf(&t, "  task \"d%d\" {\n    plugin = \"./m.wasm\"\n    input  = [task.l%d.output.n, task.r%d.output.n]\n  }\n", i+1, i, i)
	}
	fmt.Fprintf(&t, "  output \"last\" { value = task.d%d.output }\n}\n", n)
	return t.String()
}

func items(n int, more string) string {
	return fmt.Sprintf("flow \"f\" {\n  task \"t\" {\n    plugin = \"./m.wasm\"\n    for_each = trigger.payload\n    input = { id = each.value, of = each.index }\n    %s\n  }\n  output \"n\" { value = length(task.t.output) }\n}\n", more) + fmt.Sprintf("# %d\n", n)
}

func measureLarge(b *testing.B, source string, tasks int) {
	payload := "null"
	if strings.Contains(source, "for_each") {
		payload = "[" + strings.TrimSuffix(strings.Repeat(`"item",`, tasks), ",") + "]"
	}
	e := engine.New(engine.Config{Journal: memjournal.NewJournal(), Invoker: noop{}, Restore: restore})
	ctx, stop := context.WithCancel(b.Context())
	ended := make(chan error, 1)
	go func() { ended <- e.Run(ctx) }()
	if err := e.Deploy(ctx, load(b, source)); err != nil {
		b.Fatal(err)
	}
	before := heap()
	most := peak(ctx)
	b.ResetTimer()
	start := time.Now()
	for b.Loop() {
		if err := largeRun(ctx, e, payload); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(time.Since(start).Microseconds())/float64(b.N*tasks), "us/task")
	b.StopTimer()
	b.ReportMetric(float64(<-most-before)/(1<<20), "MB-peak")
	stop()
	<-ended
}

// peak gives the most heap that was in use since it was called, garbage included.
func peak(ctx context.Context) <-chan int64 {
	most, answer := int64(0), make(chan int64)
	sample := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}}
	go func() {
		tick := time.NewTicker(5 * time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				metrics.Read(sample)
				most = max(most, int64(sample[0].Value.Uint64()))
			case answer <- most:
				return
			case <-ctx.Done():
				return
			}
		}
	}()
	return answer
}

func largeRun(ctx context.Context, e *engine.Engine, payload string) error {
	receipt, err := e.Submit(ctx, run.Request{Flow: "f", Trigger: run.Trigger{Kind: run.TriggerManual, Time: time.Now(), Payload: []byte(payload)}})
	if err != nil {
		return err
	}
	record, err := e.Wait(ctx, receipt.Run)
	if err == nil && record.State != run.Succeeded {
		err = fmt.Errorf("run is %s: %w", record.State, record.Error)
	}
	return err
}
