//go:build unix

package history

import (
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"runtime"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/flowhost/flowhost/bus"
	"github.com/flowhost/flowhost/bus/internal/jskit"
	"github.com/flowhost/flowhost/bus/internal/recordjson"
	"github.com/flowhost/flowhost/bus/natsd"
	"github.com/flowhost/flowhost/run"
)

// benchRuns is how many runs the index of BenchmarkHistoryPage has.
const benchRuns = 1_000_000

// benchSummary is the i-th of runs that were accepted each millisecond: of ten
// flows in turn, each twentieth failed.
func benchSummary(start time.Time, i int) run.Summary {
	at := start.Add(time.Duration(i) * time.Millisecond).UTC()
	end := at.Add(time.Second)
	s := run.Summary{
		Run: run.NewID(at), Flow: fmt.Sprintf("flow_%d", i%10), State: run.Succeeded, CreatedAt: at, FinishedAt: &end,
		Trigger: run.TriggerSummary{Kind: run.TriggerMessage, Name: "created", Time: at},
	}
	if i/10%20 == 0 {
		s.State, s.Error = run.Failed, "no_stock"
	}
	return s
}

func BenchmarkHistoryPage(b *testing.B) {
	path := filepath.Join(b.TempDir(), "history.index")
	index, err := openIndex(path)
	if err != nil {
		b.Fatal(err)
	}
	start := time.Now().Add(-time.Hour)
	began := time.Now()
	entries := make([]indexEntry, 0, rebuildBatch)
	for i := range benchRuns {
		entries = append(entries, indexEntry{seq: uint64(i + 1), Summary: benchSummary(start, i)})
		if len(entries) == cap(entries) || i == benchRuns-1 {
			if err := index.add(entries, uint64(i+2)); err != nil {
				b.Fatal(err)
			}
			entries = entries[:0]
		}
	}
	took := time.Since(began)
	b.Cleanup(func() { index.close() })
	h := &Store{index: index}
	middle := run.MinID(start.Add(benchRuns / 2 * time.Millisecond))
	failed := []run.State{run.Failed}
	for _, q := range []struct {
		name  string
		query run.Query
	}{
		{"newest", run.Query{}},
		{"flow", run.Query{Flow: "flow_3"}},
		{"flow and state", run.Query{Flow: "flow_3", States: failed}},
		{"middle", run.Query{Before: middle}},
		{"1000 of the middle", run.Query{Before: middle, States: failed, Limit: run.MaxPage}},
	} {
		b.Run(q.name, func(b *testing.B) {
			for b.Loop() {
				page, err := h.List(b.Context(), q.query)
				if err != nil || len(page.Runs) != q.query.Size() || page.Next == "" {
					b.Fatal(len(page.Runs), page.Next, err)
				}
			}
			b.ReportMetric(b.Elapsed().Seconds()*1e3/float64(b.N), "ms/page")
		})
	}
	b.Run("build", func(b *testing.B) {
		for b.Loop() {
		}
		b.ReportMetric(float64(benchRuns)/took.Seconds(), "entries/s")
		b.ReportMetric(float64(index.size())/benchRuns, "bytes/entry")
		b.ReportMetric(float64(heap())/benchRuns, "heapbytes/entry")
	})
}

func heap() uint64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// benchRecord is the record of a run with ten tasks.
func benchRecord(start time.Time, i int) *run.Record {
	s := benchSummary(start, i)
	ok, ms := run.OutcomeSucceeded, 12.345678
	r := &run.Record{
		Run: s.Run, Flow: "orders", State: s.State, Params: map[string]json.RawMessage{"order": json.RawMessage(`{"id":17,"lines":[1,2,3]}`)},
		Trigger: run.Trigger{Kind: run.TriggerMessage, Name: "created", Time: s.CreatedAt, Subject: "orders.created", Payload: json.RawMessage(`{"id":17,"lines":[1,2,3],"customer":"somebody"}`)},
		Output:  json.RawMessage(`{"total":12.5}`), CreatedAt: s.CreatedAt, StartedAt: &s.CreatedAt, FinishedAt: s.FinishedAt, DurationMS: &ms,
	}
	for i := range 10 {
		r.Tasks = append(r.Tasks, run.TaskRecord{
			Task: fmt.Sprintf("task_%d", i), State: run.Succeeded, Outcome: &ok, Attempts: 1, StartedAt: &s.CreatedAt, FinishedAt: s.FinishedAt, DurationMS: &ms,
			Module: "sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef",
			Input:  json.RawMessage(`{"order":{"id":17,"lines":[1,2,3]},"currency":"EUR"}`), Output: json.RawMessage(`{"total":12.5,"items":[1,2,3]}`),
		})
	}
	return r
}

// benchHistory starts a history on a server of its own that keeps so many records
// of a flow in a state.
func benchHistory(b *testing.B, perFlow int64, index string) (*nats.Conn, *Store) {
	b.Helper()
	s, err := natsd.Start(b.Context(), natsd.Config{Dir: b.TempDir(), NoListen: true})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { s.Shutdown(context.Background()) })
	nc, err := s.ConnectEngine()
	if err == nil {
		err = bus.Provision(b.Context(), nc, bus.StreamConfig{HistoryPerFlow: perFlow})
	}
	if err != nil {
		b.Fatal(err)
	}
	return nc, runHistory(b, nc, index)
}

func runHistory(b *testing.B, nc *nats.Conn, index string) *Store {
	b.Helper()
	h, err := New(b.Context(), nc, Config{Index: index})
	if err != nil {
		b.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { h.Run(ctx) })
	b.Cleanup(func() { cancel(); running.Wait() })
	return h
}

func cpu(b *testing.B) time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// BenchmarkHistory gives what a record costs: its encoding alone, and all of it,
// from Committed to the index, with the server's part.
func BenchmarkHistory(b *testing.B) {
	start := time.Now()
	b.Run("encode", func(b *testing.B) {
		n, size := run.Notice{Record: benchRecord(start, 1)}, 0
		for b.Loop() {
			body, _, err := recordjson.EncodeKept(n, jskit.MaxPayload)
			if err != nil {
				b.Fatal(err)
			}
			size = len(body)
		}
		b.ReportMetric(float64(size), "bytes/record")
	})
	for name, perFlow := range map[string]int64{"growing": -1, "full": 2000} {
		b.Run(name, func(b *testing.B) {
			_, h := benchHistory(b, perFlow, filepath.Join(b.TempDir(), "history.index"))
			i, before := 0, cpu(b)
			for b.Loop() {
				now := time.Now()
				r := benchRecord(start, i)
				i++
				n := run.Notice{Revision: uint64(i), Flow: r.Flow, Record: r, Event: run.Event{Run: r.Run, At: now, Data: &run.Finished{State: r.State}}}
				if err := h.Committed(b.Context(), n); err != nil {
					b.Fatal(err)
				}
			}
			for !h.idle() {
				time.Sleep(time.Millisecond)
			}
			b.ReportMetric(float64((cpu(b)-before).Nanoseconds())/1e3/float64(i), "µs-cpu/record")
			b.ReportMetric(float64(i)/b.Elapsed().Seconds(), "records/s")
		})
	}
}

// BenchmarkHistoryRebuild gives how long it takes to make a lost index anew.
func BenchmarkHistoryRebuild(b *testing.B) {
	const records = 100_000
	nc, h := benchHistory(b, -1, filepath.Join(b.TempDir(), "history.index"))
	js, err := jetstream.New(nc, jetstream.WithPublishAsyncMaxPending(1000))
	if err != nil {
		b.Fatal(err)
	}
	start := time.Now()
	for i := range records {
		_, messages, err := h.messages(run.Notice{Record: benchRecord(start, i)})
		if err == nil {
			_, err = js.PublishMsgAsync(messages[0])
		}
		if err != nil {
			b.Fatal(err)
		}
	}
	<-js.PublishAsyncComplete()
	for b.Loop() {
		other := runHistory(b, nc, filepath.Join(b.TempDir(), "history.index"))
		if _, err := other.List(b.Context(), run.Query{}); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(records)*float64(b.N)/b.Elapsed().Seconds(), "records/s")
}
