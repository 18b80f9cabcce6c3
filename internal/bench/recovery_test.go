package main

import (
	"context"
	"encoding/json"
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/flowhost/flowhost/bus/natsd"
	"github.com/flowhost/flowhost/engine"
	memjournal "github.com/flowhost/flowhost/engine/memory"
	"github.com/flowhost/flowhost/flows"
	"github.com/flowhost/flowhost/run"
	"github.com/flowhost/flowhost/run/wire"
)

// How long a host takes to be back: from an embedded server that runs to commands
// that are answered, with 10 000 unfinished runs and 1 000 000 events to be read.
func BenchmarkRecovery(b *testing.B) {
	const open, events, tasks = 10_000, 1_000_000, 10
	set := load(b, chain(tasks))
	journal := jetStream(b, natsd.SyncRelaxed)
	w := &journalWriter{b: b, journal: journal}
	w.define(set)
	for range open {
		w.begin(set)
	}
	for w.events < events {
		w.whole(set, tasks)
	}
	w.flush()
	for b.Loop() {
		// The runs are left as they are: an engine that dies at once records no more
		// than a commit or two.
		e := engine.New(engine.Config{Journal: readOnly{journal}, Invoker: never{}, Restore: restore})
		ctx, stop := context.WithCancel(b.Context())
		ended := make(chan error, 1)
		go func() { ended <- e.Run(ctx) }()
		select {
		case <-e.Ready():
		case err := <-ended:
			b.Fatal(err)
		}
		b.StopTimer()
		stop()
		<-ended
		b.StartTimer()
	}
	b.ReportMetric(b.Elapsed().Seconds()/float64(b.N), "s/start")
	b.ReportMetric(0, "ns/op")
}

// What the process holds for each run that waits: runs of ten tasks, one of
// which is under way, the others wait for it.
func BenchmarkOpenRun(b *testing.B) {
	const open = 10_000
	set := load(b, chain(10))
	for b.Loop() {
		b.StopTimer()
		before := heap()
		e := engine.New(engine.Config{Journal: memjournal.NewJournal(), Invoker: never{}, Restore: restore})
		ctx, stop := context.WithCancel(b.Context())
		ended := make(chan error, 1)
		go func() { ended <- e.Run(ctx) }()
		if err := e.Deploy(ctx, set); err != nil {
			b.Fatal(err)
		}
		b.StartTimer()
		for range open {
			if _, err := e.Submit(ctx, run.Request{Flow: "f", Trigger: run.Trigger{Kind: run.TriggerManual, Time: time.Now()}}); err != nil {
				b.Fatal(err)
			}
		}
		b.StopTimer()
		b.ReportMetric(float64(heap()-before)/open, "bytes/run")
		stop()
		<-ended
		b.StartTimer()
	}
	b.ReportMetric(0, "ns/op")
}

func heap() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// never is a guest that works until it is stopped.
type never struct{}

func (never) Invoke(ctx context.Context, _ run.Call) (run.Result, error) {
	<-ctx.Done()
	return run.Result{}, context.Cause(ctx)
}

// readOnly takes no commits.
type readOnly struct{ engine.Journal }

func (readOnly) Append(ctx context.Context, _ uint64, _ []byte) (uint64, error) {
	<-ctx.Done()
	return 0, context.Cause(ctx)
}

// journalWriter writes a journal without an engine.
type journalWriter struct {
	b        *testing.B
	journal  engine.Journal
	revision uint64
	commit   wire.Commit
	events   int
}

func (w *journalWriter) record(id run.ID, data run.EventData) {
	if err := w.commit.Add(run.Event{Run: id, At: time.Now(), Data: data}); err != nil {
		w.b.Fatal(err)
	}
	w.events++
	if w.commit.Size() > 500<<10 {
		w.flush()
	}
}

func (w *journalWriter) flush() {
	var err error
	if w.revision, err = w.journal.Append(w.b.Context(), w.revision, w.commit.Seal(w.revision)); err != nil {
		w.b.Fatal(err)
	}
	w.commit.Reset()
}

func (w *journalWriter) define(set *flows.Set) {
	w.record("", &run.Defined{Definition: set.Flows[0].Definition})
}

// begin records a run whose first task is under way.
func (w *journalWriter) begin(set *flows.Set) run.ID {
	id := run.NewID(time.Now())
	w.record(id, &run.Submitted{
		Flow: "f", Definition: set.Flows[0].DefinitionDigest,
		Trigger: run.Trigger{Kind: run.TriggerManual, Time: time.Now()},
	})
	w.record(id, &run.Started{})
	w.start(id, 0)
	return id
}

func (w *journalWriter) start(id run.ID, task int) {
	w.record(id, &run.AttemptStarted{
		TaskRef: run.TaskRef{Task: fmt.Sprint("t", task)}, Attempt: 1, Module: "sha256:m.wasm", Function: "run",
		Input: json.RawMessage(`{"i":1,"n":1}`), Config: json.RawMessage(`{}`),
	})
}

// whole records a run from its beginning to its end.
func (w *journalWriter) whole(set *flows.Set, tasks int) {
	id := w.begin(set)
	for task := range tasks {
		if task > 0 {
			w.start(id, task)
		}
		w.record(id, &run.AttemptFinished{
			TaskRef: run.TaskRef{Task: fmt.Sprint("t", task)}, Attempt: 1,
			Outcome: run.OutcomeSucceeded, Output: json.RawMessage(`{"n":1}`), Duration: time.Microsecond,
		})
	}
	w.record(id, &run.Finished{State: run.Succeeded, Output: json.RawMessage(`{"t9":{"n":1}}`)})
}
