package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/flowhost/flowhost/bus"
	"github.com/flowhost/flowhost/bus/journal"
	"github.com/flowhost/flowhost/bus/natsd"
	"github.com/flowhost/flowhost/engine"
	memjournal "github.com/flowhost/flowhost/engine/memory"
	"github.com/flowhost/flowhost/flows"
	"github.com/flowhost/flowhost/run"
)

// What the engine costs for each task, without wasm: the invoker answers at once.
// A chain is all latency, a fan all throughput; both evaluate an expression for
// each task. Read tasks/s.
func BenchmarkEngine(b *testing.B) {
	shapes := []struct {
		name     string
		source   string
		tasks    int
		inFlight int
	}{
		{"chain-of-10/runs=1", chain(10), 10, 1},
		{"chain-of-10/runs=1000", chain(10), 10, 1000},
		{"fan-of-1000/runs=1", fan(1000), 1002, 1},
		{"fan-of-1000/runs=10", fan(1000), 1002, 10},
	}
	journals := []struct {
		name string
		open func(testing.TB) engine.Journal
	}{
		{"memory", func(testing.TB) engine.Journal { return memjournal.NewJournal() }},
		{"jetstream-relaxed", func(b testing.TB) engine.Journal { return jetStream(b, natsd.SyncRelaxed) }},
		{"jetstream-strict", func(b testing.TB) engine.Journal { return jetStream(b, natsd.SyncStrict) }},
	}
	for _, s := range shapes {
		for _, j := range journals {
			b.Run(s.name+"/"+j.name, func(b *testing.B) {
				measure(b, s.source, j.open(b), s.tasks, s.inFlight)
			})
		}
	}
}

// measure keeps the given number of runs in flight until b.N have finished.
func measure(b *testing.B, source string, journal engine.Journal, tasks, inFlight int) {
	e := engine.New(engine.Config{Journal: journal, Invoker: noop{}, Restore: restore})
	ctx, stop := context.WithCancel(b.Context())
	ended := make(chan error, 1)
	go func() { ended <- e.Run(ctx) }()
	if err := e.Deploy(ctx, load(b, source)); err != nil {
		b.Fatal(err)
	}
	b.ResetTimer()
	start := time.Now()
	keepInFlight(b, inFlight, func() error { return oneRun(ctx, e) })
	b.ReportMetric(float64(b.N*tasks)/time.Since(start).Seconds(), "tasks/s")
	b.StopTimer()
	stop()
	<-ended
}

func oneRun(ctx context.Context, e *engine.Engine) error {
	receipt, err := e.Submit(ctx, run.Request{Flow: "f", Trigger: run.Trigger{Kind: run.TriggerManual, Time: time.Now()}})
	if err != nil {
		return err
	}
	record, err := e.Wait(ctx, receipt.Run)
	if err == nil && record.State != run.Succeeded {
		err = fmt.Errorf("run is %s: %w", record.State, record.Error)
	}
	return err
}

type noop struct{}

func (noop) Invoke(_ context.Context, call run.Call) (run.Result, error) {
	return run.Result{Outcome: run.OutcomeSucceeded, Output: json.RawMessage(`{"n":1}`)}, nil
}

type catalog struct{}

func (catalog) Signature(ctx context.Context, path string) (run.Signature, error) {
	return catalog{}.SignatureOf(ctx, "sha256:"+filepath.Base(path))
}

func (catalog) SignatureOf(_ context.Context, digest string) (run.Signature, error) {
	return run.Signature{Digest: digest, ABI: "flowhost", Functions: []run.FunctionSignature{{Name: "run"}}}, nil
}

func restore(ctx context.Context, d *run.Definition) (*flows.Set, error) {
	set, diags := flows.Restore(ctx, d, flows.Options{Catalog: catalog{}})
	if diags.HasErrors() {
		return nil, diags
	}
	return set, nil
}

func load(b *testing.B, source string) *flows.Set {
	set, diags := flows.Load(b.Context(), []string{writeFile(b, "bench.hcl", source)}, flows.Options{Catalog: catalog{}})
	if diags.HasErrors() {
		b.Fatal(diags)
	}
	return set
}

func writeFile(b *testing.B, name, content string) string {
	path := filepath.Join(b.TempDir(), name)
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		b.Fatal(err)
	}
	return path
}

func jetStream(b testing.TB, sync natsd.Sync) engine.Journal {
	server, err := natsd.Start(b.Context(), natsd.Config{Dir: b.TempDir(), NoListen: true, Sync: sync})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { server.Shutdown(context.Background()) })
	return journalOn(b, server)
}

func journalOn(b testing.TB, server *natsd.Server) engine.Journal {
	nc, err := server.ConnectEngine()
	if err != nil {
		b.Fatal(err)
	}
	if err := bus.ProvisionJournal(b.Context(), nc, bus.StreamConfig{}); err != nil {
		b.Fatal(err)
	}
	j, err := journal.New(b.Context(), nc, 0, journal.Config{})
	if err != nil {
		b.Fatal(err)
	}
	return j
}

func chain(n int) string {
	var s strings.Builder
	s.WriteString("flow \"f\" {\n  task \"t0\" { plugin = \"./m.wasm\" }\n")
	for i := 1; i < n; i++ {
		fmt.Fprintf(&s, "  task \"t%d\" {\n    plugin = \"./m.wasm\"\n    input = { n = task.t%d.output.n, i = %d }\n  }\n", i, i-1, i)
	}
	s.WriteString("}\n")
	return s.String()
}

func fan(n int) string {
	var s strings.Builder
	s.WriteString("flow \"f\" {\n  task \"split\" { plugin = \"./m.wasm\" }\n")
	for i := range n {
		fmt.Fprintf(&s, "  task \"t%d\" {\n    plugin = \"./m.wasm\"\n    input = { n = task.split.output.n, i = %d }\n  }\n", i, i)
	}
	s.WriteString("  task \"join\" {\n    plugin = \"./m.wasm\"\n    after = [\n")
	for i := range n {
		fmt.Fprintf(&s, "      task.t%d,\n", i)
	}
	s.WriteString("    ]\n  }\n}\n")
	return s.String()
}
