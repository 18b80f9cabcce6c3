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
	"github.com/nats-io/nats.go/jetstream"

	"github.com/flowhost/flowhost/bus"
	"github.com/flowhost/flowhost/run"
)

const runID = run.ID("01ARZ3NDEKTSV4RRFFQ69G5FAV")

// publisher starts a publisher of events that ends with the test.
func publisher(t testing.TB, nc *nats.Conn, cfg bus.EventsConfig) *bus.Events {
	t.Helper()
	e, err := bus.NewEvents(nc, 0, cfg)
	if err != nil {
		t.Fatal(err)
	}
	runPart(t, e.Run)
	return e
}

// runPart runs what works beside an engine until the test ends.
func runPart(t testing.TB, work func(context.Context) error) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() {
		if err := work(ctx); !errors.Is(err, context.Canceled) {
			t.Errorf("Run = %v", err)
		}
	})
	t.Cleanup(func() { cancel(); running.Wait() })
}

// keepStreams has streams made again when they are gone.
func keepStreams(t testing.TB, nc *nats.Conn, log *logLines, cfg bus.StreamConfig) {
	t.Helper()
	if err := bus.ProvisionJournal(t.Context(), nc, bus.StreamConfig{}); err != nil {
		t.Fatal(err)
	}
	runPart(t, bus.NewKeeper(bus.KeeperConfig{Engine: nc, App: nc, Streams: cfg, Every: 20 * time.Millisecond, Log: log.logger()}).Run)
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
	if err := e.Drain(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// storedEvents are those of the stream's messages.
func storedEvents(t testing.TB, nc *nats.Conn) []json.RawMessage {
	t.Helper()
	var all []json.RawMessage
	for _, m := range messages(t, nc, bus.StreamEvents) {
		var events []json.RawMessage
		if err := json.Unmarshal(m.Data, &events); err != nil || len(events) == 0 {
			t.Fatalf("message %d, %q: %v", m.Sequence, m.Data, err)
		}
		all = append(all, events...)
	}
	return all
}

func idOf(t testing.TB, event []byte) string {
	t.Helper()
	var e struct{ ID string }
	if err := json.Unmarshal(event, &e); err != nil {
		t.Fatal(err)
	}
	return e.ID
}

func TestEventBodies(t *testing.T) {
	t.Parallel()
	nc := connect(t, startServer(t, bus.ServerConfig{}))
	e := publisher(t, nc, bus.EventsConfig{})
	live, err := nc.SubscribeSync("fh.v1.run.>")
	if err != nil {
		t.Fatal(err)
	}
	at := time.Now().UTC().Truncate(time.Second)
	failure := &run.Failure{Outcome: run.OutcomeFailed, Code: "bad", Message: "no <stock>"}
	ref := run.TaskRef{Task: "price", Key: `k "é`}
	key := "k"
	record := &run.Record{Run: runID, Flow: "orders", State: run.Failed, Params: map[string]json.RawMessage{}, Tasks: []run.TaskRecord{{Task: "price", Key: &key, Input: json.RawMessage(`{"a":1}`)}}}
	events := []run.EventData{
		&run.Submitted{Flow: "orders"},
		&run.Started{},
		&run.AttemptStarted{TaskRef: ref, Attempt: 1, Input: json.RawMessage(`"secret"`)},
		&run.AttemptFinished{TaskRef: ref, Attempt: 1, Outcome: run.OutcomeFailed, Failure: failure, RetryAt: at.Add(time.Minute), Output: json.RawMessage(`"secret"`), Duration: 1500 * time.Microsecond},
		&run.TaskEnded{TaskRef: ref, State: run.Skipped},
		&run.CancelRequested{Failure: failure},
		&run.WaitStarted{TaskRef: run.TaskRef{Task: "wait.x"}, Subject: "a.b", Due: at, Deadline: at.Add(time.Second)},
		&run.ChildStarted{TaskRef: ref, Attempt: 2, Child: runID, Input: json.RawMessage(`"secret"`)},
		&run.Finished{State: run.Failed, Failure: failure},
	}
	failed := `"error":{"outcome":"failed","code":"bad","message":"no <stock>","retryable":false}`
	task := `,"task":"price","key":"k \"é",`
	want := []string{ // what follows the fields that all events have
		`}`, `}`,
		task + `"attempt":1}`,
		task + `"attempt":1,"outcome":"failed",` + failed + `,"retry_at":"` + at.Add(time.Minute).Format(time.RFC3339) + `","duration_ms":1.5}`,
		task + `"state":"skipped"}`,
		`,` + failed + `}`,
		`,"task":"wait.x","subject":"a.b","due":"` + at.Format(time.RFC3339) + `","deadline":"` + at.Add(time.Second).Format(time.RFC3339) + `"}`,
		task + `"attempt":2,"child":"` + string(runID) + `"}`,
		`,"state":"failed",` + failed + `,"record":{"run":"` + string(runID) + `","flow":"orders",`,
	}
	for i, data := range events {
		n := notice(9, i, data)
		n.Event.At, n.Sum = at, 0xab
		if data.Kind() == run.KindFinished {
			n.Record = record
		}
		give(t, e, n)
	}
	// Facts that belong to no run are nobody's to follow.
	give(t, e, run.Notice{Revision: 10, Event: run.Event{At: at, Data: &run.Decided{}}})
	give(t, e, run.Notice{Revision: 10, Event: run.Event{Run: runID, At: at, Data: &run.ScheduleAdvanced{}}})

	got := storedEvents(t, nc)
	if len(got) != len(events) {
		t.Fatalf("%d events are stored, want %d", len(got), len(events))
	}
	for i, event := range got {
		wanted := fmt.Sprintf(`{"id":"0-9-%d-000000ab","kind":"%s","flow":"orders","run":"%s","at":"%s"%s`,
			i, events[i].Kind(), runID, at.Format(time.RFC3339), want[i])
		if !strings.HasPrefix(string(event), wanted) {
			t.Errorf("event %d is\n%s\nwant\n%s", i, event, wanted)
		}
		if strings.Contains(string(event), "secret") {
			t.Errorf("event %d carries a task's bytes: %s", i, event)
		}
		m, err := live.NextMsg(patience)
		if err != nil {
			t.Fatal(err)
		}
		if m.Subject != bus.EventSubject("orders", runID, events[i].Kind()) || string(m.Data) != string(event) {
			t.Errorf("live event %d on %s is\n%s\nwant\n%s", i, m.Subject, m.Data, event)
		}
	}
	var last struct{ Record run.Record }
	if err := json.Unmarshal(got[len(got)-1], &last); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(record.Tasks[0].Input, last.Record.Tasks[0].Input); diff != "" {
		t.Errorf("the record lost its tasks' bytes: %s", diff)
	}
}

// The stream gets one message for what happened to a run until its end, and another
// run's events are in another.
func TestEventsOfARunShareMessages(t *testing.T) {
	t.Parallel()
	nc := connect(t, startServer(t, bus.ServerConfig{}))
	e, err := bus.NewEvents(nc, 0, bus.EventsConfig{})
	if err != nil {
		t.Fatal(err)
	}
	other := run.NewID(time.Now())
	for i := range 40 {
		n := notice(uint64(i+1), 0, &run.Started{})
		if i%2 == 1 {
			n.Event.Run = other
		}
		if i >= 38 {
			n.Event.Data = &run.Finished{State: run.Succeeded}
		}
		if err := e.Committed(t.Context(), n); err != nil {
			t.Fatal(err)
		}
	}
	runPart(t, e.Run)
	if err := e.Drain(t.Context()); err != nil {
		t.Fatal(err)
	}
	got := messages(t, nc, bus.StreamEvents)
	if len(got) != 2 || got[0].Subject != "fh.v1.events.orders."+string(runID) || got[1].Subject != "fh.v1.events.orders."+string(other) {
		t.Fatalf("messages: %+v", got)
	}
	var ids []string
	for _, event := range storedEvents(t, nc) {
		ids = append(ids, idOf(t, event))
	}
	want := make([]string, 0, 40)
	for _, first := range []int{1, 2} {
		for i := first; i <= 40; i += 2 {
			want = append(want, fmt.Sprintf("0-%d-0-00000000", i))
		}
	}
	if diff := cmp.Diff(want, ids); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
}

// Live events are made for those who listen, whatever the stream gets.
func TestEventsOf(t *testing.T) {
	t.Parallel()
	for of, stored := range map[bus.EventsOf]int{bus.EventsOfTasks: 4, bus.EventsOfRuns: 2, bus.EventsOfNone: 0} {
		t.Run(string(of), func(t *testing.T) {
			t.Parallel()
			s := startServer(t, bus.ServerConfig{})
			nc := connectApp(t, s)
			e := publisher(t, nc, bus.EventsConfig{Of: of, Listened: s.Listened})
			listener := connectApp(t, s)
			sub, err := listener.SubscribeSync("fh.v1.run.orders.*.attempt_started")
			if err == nil {
				err = listener.Flush()
			}
			if err != nil {
				t.Fatal(err)
			}
			ref := run.TaskRef{Task: "price"}
			before := nc.Stats().OutMsgs
			give(t, e, notice(1, 0, &run.Started{}), notice(1, 1, &run.AttemptStarted{TaskRef: ref, Attempt: 1}),
				notice(1, 2, &run.AttemptFinished{TaskRef: ref, Attempt: 1}), notice(1, 3, &run.Finished{State: run.Succeeded}))
			if m, err := sub.NextMsg(patience); err != nil || idOf(t, m.Data) != "0-1-1-00000000" {
				t.Errorf("live event: %v, %v", m, err)
			}
			if got := len(storedEvents(t, nc)); got != stored {
				t.Errorf("%d events are stored, want %d", got, stored)
			}
			if got := s.Listened("fh.v1.run.orders.x.finished"); got {
				t.Error("somebody listens to the ends of runs")
			}
			if of == bus.EventsOfNone {
				if sent := nc.Stats().OutMsgs - before; sent > 4 { // one event, and the requests of this test
					t.Errorf("%d messages were sent for one listener's event", sent)
				}
			}
		})
	}
}

// Where nobody can tell who listens, what is stored is published live, too.
func TestLiveEventsWithoutKnowledge(t *testing.T) {
	t.Parallel()
	nc := connect(t, startServer(t, bus.ServerConfig{}))
	e := publisher(t, nc, bus.EventsConfig{Of: bus.EventsOfRuns})
	sub, err := nc.SubscribeSync("fh.v1.run.>")
	if err != nil {
		t.Fatal(err)
	}
	give(t, e, notice(1, 0, &run.TaskEnded{TaskRef: run.TaskRef{Task: "price"}}), notice(1, 1, &run.Finished{State: run.Succeeded}))
	if m, err := sub.NextMsg(patience); err != nil || idOf(t, m.Data) != "0-1-1-00000000" {
		t.Errorf("live event: %v, %v", m, err)
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
	for _, event := range storedEvents(t, nc) {
		var b body
		if err := json.Unmarshal(event, &b); err != nil {
			t.Fatal(err)
		}
		got = append(got, b)
	}
	if len(got) != 3 {
		t.Fatalf("%d events are stored, want 3", len(got))
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

func TestEventsTooLargeAreLeftOut(t *testing.T) {
	t.Parallel()
	nc := connect(t, startServer(t, bus.ServerConfig{}))
	var log logLines
	e := publisher(t, nc, bus.EventsConfig{Log: log.logger()})
	huge := &run.Failure{Message: strings.Repeat("x", 9<<20)}
	give(t, e, notice(1, 0, &run.Started{}), notice(1, 1, &run.CancelRequested{Failure: huge}), notice(1, 2, &run.Finished{State: run.Canceled}))
	if got := storedEvents(t, nc); len(got) != 2 {
		t.Errorf("%d events are stored, want 2", len(got))
	}
	if log.count("events cannot be stored") != 1 {
		t.Error("the log does not tell")
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

// The engine never waits for events: when nothing is published they are dropped, and
// the log says so. What comes later is published.
func TestEventsNeverHoldBack(t *testing.T) {
	t.Parallel()
	s := startServer(t, bus.ServerConfig{})
	nc := connect(t, s)
	var log logLines
	e, err := bus.NewEvents(nc, 0, bus.EventsConfig{Log: log.logger()})
	if err != nil {
		t.Fatal(err)
	}
	large := &run.Failure{Message: strings.Repeat("x", 1<<20)}
	for i := range 100 { // Run is not there to publish them
		if err := e.Committed(t.Context(), notice(uint64(i+1), 0, &run.CancelRequested{Failure: large})); err != nil {
			t.Fatal(err)
		}
	}
	runPart(t, e.Run)
	eventually(t, "the log tells", func() bool { return log.count("events were dropped") == 1 })
	give(t, e, notice(200, 0, &run.Started{}))
	got := storedEvents(t, nc)
	if len(got) < 20 || len(got) > 40 || idOf(t, got[len(got)-1]) != "0-200-0-00000000" {
		t.Errorf("%d events are stored, the last of them %.60s", len(got), got[len(got)-1])
	}
}

// A stream that is deleted or purged is no harm: it is made again, the log says so,
// and nothing waits for it.
func TestEventsStreamIsGone(t *testing.T) {
	t.Parallel()
	nc := connect(t, startServer(t, bus.ServerConfig{}))
	var log logLines
	keepStreams(t, nc, &log, bus.StreamConfig{EventBytes: 1 << 20})
	e := publisher(t, nc, bus.EventsConfig{Timeout: time.Second, Log: log.logger()})
	js := jetStream(t, nc)
	give(t, e, notice(1, 0, &run.Started{}))
	if err := js.DeleteStream(t.Context(), bus.StreamEvents); err != nil {
		t.Fatal(err)
	}
	give(t, e, notice(2, 0, &run.Started{}), notice(2, 1, &run.Finished{State: run.Succeeded}))
	if got := storedEvents(t, nc); len(got) != 2 {
		t.Errorf("%d events are stored, want 2", len(got))
	}
	if got := streamLimits(t, nc, bus.StreamEvents); got.Bytes != 1<<20 {
		t.Errorf("the new stream has %+v", got)
	}
	if log.count("level=ERROR") != 1 || log.count("a stream was removed") != 1 {
		t.Error("the log does not tell")
	}
	stream, err := js.Stream(t.Context(), bus.StreamEvents)
	if err == nil {
		err = stream.Purge(t.Context())
	}
	if err != nil {
		t.Fatal(err)
	}
	give(t, e, notice(3, 0, &run.Started{}))
	if got := storedEvents(t, nc); len(got) != 1 {
		t.Errorf("%d events are stored after a purge, want 1", len(got))
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
	e := publisher(t, nc, bus.EventsConfig{Timeout: 200 * time.Millisecond, Log: log.logger()})
	const each = 150
	for round := range 3 {
		var giver sync.WaitGroup
		giver.Go(func() {
			for i := range each {
				if err := e.Committed(t.Context(), notice(uint64(round+1), i, &run.Started{})); err != nil {
					t.Error(err)
				}
			}
		})
		x.stop()
		x.start()
		giver.Wait()
	}
	give(t, e, notice(9, 0, &run.Finished{State: run.Succeeded}))
	eventually(t, "the stream goes on", func() bool {
		all := storedEvents(t, nc)
		return slices.ContainsFunc(all, func(event json.RawMessage) bool { return idOf(t, event) == "0-9-0-00000000" })
	})
}

// The mark says how far others know of the journal, also after its stream is gone.
func TestMark(t *testing.T) {
	t.Parallel()
	nc := connect(t, startServer(t, bus.ServerConfig{}))
	var log logLines
	m, err := bus.NewMark(nc, 0, bus.MarkConfig{Timeout: time.Second, Log: log.logger()})
	if err != nil {
		t.Fatal(err)
	}
	last := func() uint64 {
		t.Helper()
		other, err := bus.NewMark(nc, 0, bus.MarkConfig{})
		if err != nil {
			t.Fatal(err)
		}
		revision, err := other.Last(t.Context())
		if err != nil && !errors.Is(err, jetstream.ErrStreamNotFound) {
			t.Fatal(err)
		}
		return revision
	}
	if got := last(); got != 0 {
		t.Errorf("a mark before there is one: %d", got)
	}
	runPart(t, m.Run)
	keepStreams(t, nc, &log, bus.StreamConfig{})
	for revision := range uint64(5000) {
		m.Durable(revision + 1)
	}
	eventually(t, "the mark", func() bool { return last() == 5000 })
	m.Durable(7) // a loss was accepted
	eventually(t, "the mark goes back", func() bool { return last() == 7 })
	if err := jetStream(t, nc).DeleteStream(t.Context(), bus.StreamMarks); err != nil {
		t.Fatal(err)
	}
	m.Durable(8)
	eventually(t, "a new mark", func() bool { return last() == 8 })
	if log.count("a stream was removed") != 1 {
		t.Error("the log does not tell")
	}
	if got := len(messages(t, nc, bus.StreamMarks)); got != 1 {
		t.Errorf("the stream holds %d messages, want 1", got)
	}
}

func BenchmarkEvents(b *testing.B) {
	s := startServer(b, bus.ServerConfig{})
	e := publisher(b, connectApp(b, s), bus.EventsConfig{Listened: s.Listened})
	index := 0
	for b.Loop() {
		if err := e.Committed(b.Context(), notice(1, index, &run.Started{})); err != nil {
			b.Fatal(err)
		}
		index++
	}
	if err := e.Drain(b.Context()); err != nil {
		b.Fatal(err)
	}
	b.ReportMetric(float64(index)/b.Elapsed().Seconds(), "events/s")
}
