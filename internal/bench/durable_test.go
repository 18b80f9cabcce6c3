package main

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/flowhost/flowhost/bus"
	"github.com/flowhost/flowhost/bus/events"
	"github.com/flowhost/flowhost/bus/feed"
	"github.com/flowhost/flowhost/bus/history"
	"github.com/flowhost/flowhost/bus/journal"
	"github.com/flowhost/flowhost/bus/natsd"
	"github.com/flowhost/flowhost/engine"
	"github.com/flowhost/flowhost/flows"
	"github.com/flowhost/flowhost/host"
)

// What a task costs in all, on the embedded NATS server, in one process: engine,
// sandboxed call of a small C guest, and the journal with its snapshots; with the
// history of finished runs; with events of runs, or of tasks, too. 1 000 runs of
// ten tasks in a chain are in flight. A task's input is what the one before it gave
// ("reference"), or an object with a member of that and a constant ("object"). Read
// tasks/s and µs of CPU for each task. Run it with GOGC=400 to see what tuned
// collection is worth; the program sets 200 for itself.
func BenchmarkDurable(b *testing.B) {
	const reference, object = `task.t%d.output`, `{ n = task.t%d.output.n, i = 1 }`
	for _, c := range []struct {
		name         string
		level        natsd.Sync
		keeps, input string
	}{
		{"strict/journal/reference", natsd.SyncStrict, "journal", reference},
		{"relaxed/journal/reference", natsd.SyncRelaxed, "journal", reference},
		{"strict/history/reference", natsd.SyncStrict, "history", reference},
		{"relaxed/history/reference", natsd.SyncRelaxed, "history", reference},
		{"strict/history/object", natsd.SyncStrict, "history", object},
		{"strict/runs/reference", natsd.SyncStrict, "runs", reference},
		{"strict/default/reference", natsd.SyncStrict, "tasks", reference}, // what a user gets
	} {
		b.Run(c.name, func(b *testing.B) {
			const tasks, inFlight = 10, 1000
			rig := newDurable(b, c.level, c.keeps, echoChain(b, tasks, c.input))
			before := cpuTime(b)
			b.ResetTimer()
			keepInFlight(b, inFlight, rig.one)
			took := b.Elapsed()
			b.StopTimer()
			done := float64(b.N * tasks)
			b.ReportMetric(done/took.Seconds(), "tasks/s")
			b.ReportMetric(float64((cpuTime(b)-before).Microseconds())/done, "cpu-µs/task")
			b.ReportMetric(0, "ns/op")
		})
	}
}

// durable is everything of a host that serves but its triggers: what it keeps is
// kept on the embedded server, snapshots, history and events of runs included.
type durable struct {
	*engine.Engine
	ctx context.Context
}

func newDurable(b *testing.B, level natsd.Sync, keeps, source string) *durable {
	const workers = 32 // calls of some microseconds: enough of them hide the time that it takes to wake one
	h, err := host.New(b.Context(), host.Config{CacheDir: b.TempDir(), Instances: workers, CompileCommand: compileCommand()})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { h.Close(context.Background()) })
	server, err := natsd.Start(b.Context(), natsd.Config{Dir: b.TempDir(), NoListen: true, Sync: level})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { server.Shutdown(context.Background()) })
	config := engine.Config{Invoker: h, Workers: workers, Restore: restore, Journal: journalOn(b, server)}
	ctx, stop := context.WithCancel(b.Context())
	var working sync.WaitGroup
	observe(b, ctx, &working, server, &config, keeps)
	e := engine.New(config)
	working.Go(func() { e.Run(ctx) })
	b.Cleanup(func() {
		stop()
		working.Wait()
	})
	set, diags := flows.Load(ctx, []string{source}, flows.Options{Catalog: h})
	if diags.HasErrors() {
		b.Fatal(diags)
	}
	if err := e.Deploy(ctx, set); err != nil {
		b.Fatal(err)
	}
	return &durable{e, ctx}
}

// observe gives an engine everything that it keeps beside its journal.
func observe(b *testing.B, ctx context.Context, working *sync.WaitGroup, server *natsd.Server, config *engine.Config, keeps string) {
	must := func(err error) {
		if err != nil {
			b.Fatal(err)
		}
	}
	own, err := server.ConnectEngine()
	must(err)
	nc, err := server.ConnectEngine()
	must(err)
	must(bus.Provision(ctx, nc, bus.StreamConfig{}))
	snapshots, err := journal.NewObjects(ctx, own, bus.BucketSnapshots, journal.ObjectsConfig{})
	must(err)
	blobs, err := journal.NewObjects(ctx, own, bus.BucketBlobs, journal.ObjectsConfig{})
	must(err)
	aside, err := server.ConnectApp()
	must(err)
	must(bus.ProvisionEvents(ctx, aside, bus.StreamConfig{}))
	published, err := events.New(aside, 0, events.Config{Of: events.Of(keeps), Listened: server.Listened})
	must(err)
	mark, err := journal.NewMark(nc, 0, journal.MarkConfig{})
	must(err)
	records, err := history.New(ctx, nc, history.Config{Index: filepath.Join(b.TempDir(), "index"), Sync: server.Sync})
	must(err)
	config.Snapshots, config.Blobs, config.History = snapshots, blobs, records
	working.Go(func() { records.Run(ctx) })
	if keeps == "journal" {
		return
	}
	config.Observers = []engine.Observation{{Observer: records, RunsOnly: true}}
	tail, err := server.ConnectEngine()
	must(err)
	followed, err := journal.New(ctx, tail, 0, journal.Config{})
	must(err)
	follow := feed.New(feed.Config{Journal: followed, History: records})
	working.Go(func() { follow.Run(ctx) })
	config.Durable = func(revision uint64) {
		mark.Durable(revision)
		follow.Durable(revision)
	}
	working.Go(func() { mark.Run(ctx) })
	if keeps != "history" {
		config.Observers = append(config.Observers, engine.Observation{Observer: published})
		working.Go(func() { published.Run(ctx) })
	}
}

func (d *durable) one() error { return oneRun(d.ctx, d.Engine) }

// echoChain writes a flow of tasks that give their input back, each after the one
// before, and gives its file.
func echoChain(b *testing.B, n int, input string) string {
	module, err := filepath.Abs(guestFolder + "/c/small.wasm")
	if err != nil {
		b.Fatal(err)
	}
	var s strings.Builder
	fmt.Fprintf(&s, "plugin \"small\" { source = %q }\nflow \"f\" {\n", module)
	task := func(i int, input string) {
		fmt.Fprintf(&s, "  task \"t%d\" {\n    plugin = plugin.small\n    function = \"echo\"\n    input = %s\n  }\n", i, input)
	}
	task(0, "{ n = 1 }")
	for i := 1; i < n; i++ {
		task(i, fmt.Sprintf(input, i-1))
	}
	s.WriteString("}\n")
	return writeFile(b, "durable.hcl", s.String())
}

// keepInFlight makes b.N runs, so many at a time.
func keepInFlight(b *testing.B, inFlight int, one func() error) {
	slots := make(chan error, inFlight)
	for range min(inFlight, b.N) {
		slots <- nil
	}
	for range b.N {
		if err := <-slots; err != nil {
			b.Fatal(err)
		}
		go func() { slots <- one() }()
	}
	for range min(inFlight, b.N) {
		if err := <-slots; err != nil {
			b.Fatal(err)
		}
	}
}

// cpuTime is what the process has used so far, in user and system mode.
func cpuTime(b *testing.B) time.Duration {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		b.Fatal(err)
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}
