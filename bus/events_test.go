package bus_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/nats-io/nats.go"

	"github.com/flowhost/flowhost/bus"
	"github.com/flowhost/flowhost/run"
)

const runID = run.ID("01ARZ3NDEKTSV4RRFFQ69G5FAV")

// publisher starts a publisher of events that ends with the test.
func publisher(t testing.TB, nc *nats.Conn, cfg bus.EventsConfig) *bus.Events {
	t.Helper()
	e, err := bus.NewEvents(t.Context(), nc, 0, cfg)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() {
		if err := e.Run(ctx); !errors.Is(err, context.Canceled) {
			t.Errorf("Run = %v", err)
		}
	})
	t.Cleanup(func() { cancel(); running.Wait() })
	return e
}

func notice(revision uint64, index int, data run.EventData) run.Notice {
	return run.Notice{Revision: revision, Index: index, Flow: "orders", Event: run.Event{Run: runID, At: time.Now().UTC(), Data: data}}
}

func give(t testing.TB, e *bus.Events, notices ...run.Notice) {
	t.Helper()
	for _, n := range notices {
		if err := e.Committed(t.Context(), n); err != nil {
			t.Fatal(err)
		}
	}
	if err := e.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
}

func TestEventBodies(t *testing.T) {
	t.Parallel()
	nc := connect(t, startServer(t, bus.ServerConfig{}))
	e := publisher(t, nc, bus.EventsConfig{})
	at := time.Now().UTC().Truncate(time.Second)
	failure := &run.Failure{Outcome: run.OutcomeFailed, Code: "bad", Message: "no <stock>"}
	ref := run.TaskRef{Task: "price", Key: "k"}
	key := "k"
	record := &run.Record{Run: runID, Flow: "orders", State: run.Failed, Params: map[string]json.RawMessage{}, Tasks: []run.TaskRecord{{Task: "price", Key: &key, Input: json.RawMessage(`{"a":1}`)}}}
	events := []run.EventData{
		&run.Submitted{Flow: "orders"},
		&run.Started{},
		&run.AttemptStarted{TaskRef: ref, Attempt: 1, Input: json.RawMessage(`"secret"`)},
		&run.AttemptFinished{TaskRef: ref, Attempt: 1, Outcome: run.OutcomeFailed, Failure: failure, RetryAt: at.Add(time.Minute), Output: json.RawMessage(`"secret"`), Duration: 1500 * time.Microsecond},
		&run.TaskEnded{TaskRef: ref, State: run.Skipped},
		&run.CancelRequested{Failure: failure},
		&run.Finished{State: run.Failed, Failure: failure},
	}
	failed := `"error":{"outcome":"failed","code":"bad","message":"no <stock>","retryable":false}`
	want := []string{ // what follows the fields that all events have
		`}`, `}`,
		`,"task":"price","key":"k","attempt":1}`,
		`,"task":"price","key":"k","attempt":1,"outcome":"failed",` + failed + `,"retry_at":"` + at.Add(time.Minute).Format(time.RFC3339) + `","duration_ms":1.5}`,
		`,"task":"price","key":"k","state":"skipped"}`,
		`,` + failed + `}`,
		`,"state":"failed",` + failed + `,"record":{"run":"` + string(runID) + `","flow":"orders",`,
	}
	for i, data := range events {
		n := notice(9, i, data)
		n.Event.At = at
		if data.Kind() == run.KindFinished {
			n.Record = record
		}
		give(t, e, n)
	}
	// Facts that belong to no run are nobody's to follow.
	give(t, e, run.Notice{Revision: 10, Event: run.Event{At: at, Data: &run.Decided{}}})
	give(t, e, run.Notice{Revision: 10, Event: run.Event{Run: runID, At: at, Data: &run.ScheduleAdvanced{}}})

	got := messages(t, nc, bus.StreamEvents)
	if len(got) != len(events) {
		t.Fatalf("%d events are published, want %d", len(got), len(events))
	}
	for i, m := range got {
		wanted := fmt.Sprintf(`{"id":"0-9-%d-00000000","kind":"%s","flow":"orders","run":"%s","at":"%s"%s`,
			i, events[i].Kind(), runID, at.Format(time.RFC3339), want[i])
		if !strings.HasPrefix(string(m.Data), wanted) {
			t.Errorf("event %d is\n%s\nwant\n%s", i, m.Data, wanted)
		}
		if strings.Contains(string(m.Data), "secret") {
			t.Errorf("event %d carries a task's bytes: %s", i, m.Data)
		}
		if m.Subject != "fh.v1.run.orders."+string(runID)+"."+events[i].Kind() || m.Header.Get(bus.HeaderRevision) != "9" || m.Header.Get(bus.HeaderIndex) != fmt.Sprint(i) {
			t.Errorf("event %d: subject %s, headers %v", i, m.Subject, m.Header)
		}
	}
	var last struct{ Record run.Record }
	if err := json.Unmarshal(got[6].Data, &last); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(record.Tasks[0].Input, last.Record.Tasks[0].Input); diff != "" {
		t.Errorf("the record lost its tasks' bytes: %s", diff)
	}
}

func TestEventsOnceAndInOrder(t *testing.T) {
	t.Parallel()
	nc := connect(t, startServer(t, bus.ServerConfig{}))
	e := publisher(t, nc, bus.EventsConfig{Window: 16})
	var notices []run.Notice
	var want []string
	for i := range 500 {
		revision, index := uint64(i/7+1), i%7
		notices = append(notices, notice(revision, index, &run.Started{}))
		want = append(want, fmt.Sprintf("0-%d-%d-00000000", revision, index))
	}
	give(t, e, notices[:300]...)
	give(t, e, notices[200:]...) // a start gives again what may have been published
	var got []string
	for _, m := range messages(t, nc, bus.StreamEvents) {
		got = append(got, m.Header.Get("Nats-Msg-Id"))
	}
	if !slices.Equal(got, want) {
		t.Errorf("%d events are published, want each of %d once and in order", len(got), len(want))
	}
}

func TestEventsLast(t *testing.T) {
	t.Parallel()
	s := startServer(t, bus.ServerConfig{})
	nc, j := connect(t, s), openJournal(t, connectJournal(t, s), bus.JournalConfig{})
	e := publisher(t, nc, bus.EventsConfig{})
	if got, err := e.Last(t.Context(), j); got != (bus.Standing{}) || err != nil {
		t.Errorf("Last of nothing = %+v, %v", got, err)
	}
	give(t, e, notice(4, 0, &run.Started{}), notice(7, 2, &run.Finished{State: run.Succeeded}))
	wantLast(t, e, j, bus.Standing{Told: 7}) // the journal has lost everything
	var sums []uint32
	for i := range uint64(9) {
		commit := fmt.Appendf(nil, "commit %d", i)
		if _, err := j.Append(t.Context(), i, commit); err != nil {
			t.Fatal(err)
		}
		sums = append(sums, run.CommitSum(commit))
	}
	n := notice(8, 3, &run.Started{})
	n.Sum = sums[7]
	give(t, e, n)
	// Another shard's events, and what is not an event at all, are passed over.
	other, err := bus.NewEvents(t.Context(), nc, 1, bus.EventsConfig{})
	if err != nil {
		t.Fatal(err)
	}
	wantLast(t, other, j, bus.Standing{})
	if err := nc.Publish("fh.v1.run.a.b.c", []byte("by hand")); err != nil {
		t.Fatal(err)
	}
	if err := nc.Flush(); err != nil {
		t.Fatal(err)
	}
	wantLast(t, e, j, bus.Standing{Revision: 8, Index: 3, Told: 8})
	if err := j.Compact(t.Context(), 8); err != nil {
		t.Fatal(err)
	}
	wantLast(t, e, j, bus.Standing{Revision: 8, Index: 3, Told: 8})
	// An older version's id does not tell which commit it was.
	old := &nats.Msg{Subject: "fh.v1.run.a.b.c", Header: nats.Header{"Nats-Msg-Id": {"0-9-5"}}}
	if _, err := jetStream(t, nc).PublishMsg(t.Context(), old); err != nil {
		t.Fatal(err)
	}
	wantLast(t, e, j, bus.Standing{Revision: 9, Index: 5, Told: 9})
}

func wantLast(t *testing.T, e *bus.Events, j *bus.Journal, want bus.Standing) {
	t.Helper()
	if got, err := e.Last(t.Context(), j); got != want || err != nil {
		t.Errorf("Last = %+v, %v, want %+v", got, err, want)
	}
}

func TestEventsTruncateRecord(t *testing.T) {
	t.Parallel()
	nc := connect(t, startServer(t, bus.ServerConfig{}))
	e := publisher(t, nc, bus.EventsConfig{})
	big := json.RawMessage(`"` + strings.Repeat("x", 5<<20) + `"`)
	finished := func(revision uint64, output json.RawMessage, in, out json.RawMessage) run.Notice {
		n := notice(revision, 0, &run.Finished{State: run.Succeeded})
		n.Record = &run.Record{Run: runID, Flow: "orders", State: run.Succeeded, Output: output, Tasks: []run.TaskRecord{{Task: "price", Input: in, Output: out}}}
		return n
	}
	first := finished(1, json.RawMessage(`1`), big, big)
	give(t, e, first, finished(2, json.RawMessage(`[`+string(big)+`,`+string(big)+`]`), nil, nil), notice(3, 0, &run.Started{}))
	type body struct {
		Record    *run.Record
		State     run.State
		Truncated bool
	}
	var got []body
	for _, m := range messages(t, nc, bus.StreamEvents) {
		var b body
		if err := json.Unmarshal(m.Data, &b); err != nil {
			t.Fatal(err)
		}
		got = append(got, b)
	}
	if len(got) != 3 {
		t.Fatalf("%d events are published, want 3", len(got))
	}
	if r := got[0].Record; !got[0].Truncated || r == nil || string(r.Output) != "1" || r.Tasks[0].Task != "price" || string(r.Tasks[0].Input) != "null" {
		t.Errorf("first event: %+v", got[0])
	}
	if got[1].Record != nil || !got[1].Truncated || got[1].State != run.Succeeded {
		t.Errorf("second event: truncated %t, record %t", got[1].Truncated, got[1].Record != nil)
	}
	if len(first.Record.Tasks[0].Input) != len(big) {
		t.Error("the caller's record was changed")
	}
}

func TestEventsTooLargeIsLeftOut(t *testing.T) {
	t.Parallel()
	nc := connect(t, startServer(t, bus.ServerConfig{}))
	var log logLines
	e := publisher(t, nc, bus.EventsConfig{Log: log.logger()})
	huge := &run.Failure{Message: strings.Repeat("x", 9<<20)}
	give(t, e, notice(1, 0, &run.Started{}), notice(1, 1, &run.CancelRequested{Failure: huge}), notice(1, 2, &run.Finished{State: run.Canceled}))
	if got := messages(t, nc, bus.StreamEvents); len(got) != 2 {
		t.Errorf("%d events are published, want 2", len(got))
	}
	if log.count("one of the events cannot be published") != 1 {
		t.Error("the log does not tell")
	}
}

func TestEventsOlderThanTheStreamKeeps(t *testing.T) {
	t.Parallel()
	nc := connect(t, startServer(t, bus.ServerConfig{}))
	e := publisher(t, nc, bus.EventsConfig{})
	old := notice(1, 0, &run.Started{})
	old.Event.At = time.Now().Add(-bus.DefaultEventAge - time.Minute)
	give(t, e, old, notice(2, 0, &run.Started{}))
	if got := messages(t, nc, bus.StreamEvents); len(got) != 1 || got[0].Header.Get(bus.HeaderRevision) != "2" {
		t.Errorf("%d events are published, want that of revision 2", len(got))
	}
}

func TestEventsBadFlow(t *testing.T) {
	t.Parallel()
	e := publisher(t, connect(t, startServer(t, bus.ServerConfig{})), bus.EventsConfig{})
	n := notice(1, 0, &run.Started{})
	n.Flow = "a.b"
	if err := e.Committed(t.Context(), n); err == nil {
		t.Error("Committed took a flow whose name is no token")
	}
}

// Without Run nothing is published, and Committed pushes back.
func TestEventsBackPressure(t *testing.T) {
	t.Parallel()
	nc := connect(t, startServer(t, bus.ServerConfig{}))
	e, err := bus.NewEvents(t.Context(), nc, 0, bus.EventsConfig{Window: 2})
	if err != nil {
		t.Fatal(err)
	}
	full := errors.New("the test has seen enough")
	ctx, cancel := context.WithCancelCause(t.Context())
	defer cancel(nil)
	taken := 0
	for err == nil {
		if taken == 2 {
			cancel(full)
		}
		if err = e.Committed(ctx, notice(1, taken, &run.Started{})); err == nil {
			taken++
		}
	}
	if taken != 2 || !errors.Is(err, full) {
		t.Errorf("Committed took %d events, then %v", taken, err)
	}
	if err := e.Flush(ctx); !errors.Is(err, full) {
		t.Errorf("Flush = %v", err)
	}
}

func TestEventsOverRestarts(t *testing.T) {
	t.Parallel()
	x := newExternal(t)
	x.start()
	var log logLines
	nc := x.connect(&log, x.address())
	if err := bus.ProvisionEvents(t.Context(), nc, bus.StreamConfig{Replicas: 1}); err != nil {
		t.Fatal(err)
	}
	e := publisher(t, nc, bus.EventsConfig{Window: 8, Timeout: 200 * time.Millisecond, Log: log.logger()})
	const each = 150
	var want []string
	for round := range 3 {
		var giver sync.WaitGroup
		giver.Go(func() {
			for i := range each {
				n := notice(uint64(round+1), i, &run.Started{})
				if err := e.Committed(t.Context(), n); err != nil {
					t.Error(err)
				}
			}
		})
		x.stop()
		x.start()
		giver.Wait()
		for i := range each {
			want = append(want, fmt.Sprintf("0-%d-%d-00000000", round+1, i))
		}
	}
	if err := e.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, m := range messages(t, nc, bus.StreamEvents) {
		got = append(got, m.Header.Get("Nats-Msg-Id"))
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("published events (-want +got):\n%s", diff)
	}
}

func BenchmarkEvents(b *testing.B) {
	e := publisher(b, connect(b, startServer(b, bus.ServerConfig{})), bus.EventsConfig{})
	index := 0
	for b.Loop() {
		if err := e.Committed(b.Context(), notice(1, index, &run.Started{})); err != nil {
			b.Fatal(err)
		}
		index++
	}
	if err := e.Flush(b.Context()); err != nil {
		b.Fatal(err)
	}
	b.ReportMetric(float64(index)/b.Elapsed().Seconds(), "events/s")
}
