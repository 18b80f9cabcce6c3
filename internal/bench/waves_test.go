package main

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/flowhost/flowhost/engine"
	memjournal "github.com/flowhost/flowhost/engine/memory"
	"github.com/flowhost/flowhost/run"
)

// What it is worth that a task starts the moment its own dependencies are done.
// Chains of equal length whose slow tasks are at different places: the longest
// path is one chain, while an executor that goes wave by wave waits for the slow
// task of each wave. Read the time as a multiple of the longest path.
func BenchmarkSkewedGraph(b *testing.B) {
	const chains, length = 6, 6
	const slow, quick = 100 * time.Millisecond, 10 * time.Millisecond
	set := load(b, skewed(chains, length, slow, quick))
	e := engine.New(engine.Config{Journal: memjournal.NewJournal(), Invoker: sleeper{}, Restore: restore, Workers: 4 * chains})
	ctx, stop := context.WithCancel(b.Context())
	ended := make(chan error, 1)
	go func() { ended <- e.Run(ctx) }()
	if err := e.Deploy(ctx, set); err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if err := oneRun(ctx, e); err != nil {
			b.Fatal(err)
		}
	}
	critical := slow + (length-1)*quick
	b.ReportMetric(float64(b.Elapsed())/float64(b.N)/float64(critical), "ready-queue/critical-path")
	b.ReportMetric(float64(length*slow)/float64(critical), "waves/critical-path")
	b.ReportMetric(0, "ns/op")
	stop()
	<-ended
}

// skewed writes chains in which the n-th chain's n-th task is the slow one.
func skewed(chains, length int, slow, quick time.Duration) string {
	var s strings.Builder
	s.WriteString("flow \"f\" {\n")
	for c := range chains {
		for i := range length {
			took := quick
			if i == c%length {
				took = slow
			}
			fmt.Fprintf(&s, "  task \"c%d_%d\" {\n    plugin = \"./m.wasm\"\n    input = %d\n", c, i, took.Milliseconds())
			if i > 0 {
				fmt.Fprintf(&s, "    after = [task.c%d_%d]\n", c, i-1)
			}
			s.WriteString("  }\n")
		}
	}
	s.WriteString("}\n")
	return s.String()
}

// sleeper takes as many milliseconds as its input says.
type sleeper struct{}

func (sleeper) Invoke(ctx context.Context, call run.Call) (run.Result, error) {
	var ms int
	if err := json.Unmarshal(call.Input, &ms); err != nil {
		return run.Result{}, err
	}
	select {
	case <-time.After(time.Duration(ms) * time.Millisecond):
		return run.Result{Outcome: run.OutcomeSucceeded, Output: json.RawMessage("null")}, nil
	case <-ctx.Done():
		return run.Result{}, context.Cause(ctx)
	}
}
