package events_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/nats-io/nats.go"

	"github.com/flowhost/flowhost/bus"
	"github.com/flowhost/flowhost/bus/events"
	"github.com/flowhost/flowhost/bus/internal/bustest"
	"github.com/flowhost/flowhost/bus/natsd"
	"github.com/flowhost/flowhost/run"
)

// storedEvents are those of the stream's messages.
func storedEvents(t testing.TB, nc *nats.Conn) []json.RawMessage {
	t.Helper()
	var all []json.RawMessage
	for _, m := range bustest.Messages(t, nc, bus.StreamEvents) {
		var events []json.RawMessage
		if err := json.Unmarshal(m.Data, &events); err != nil || len(events) == 0 {
			t.Fatalf("message %d, %q: %v", m.Sequence, m.Data, err)
		}
		all = append(all, events...)
	}
	return all
}

func TestEventBodies(t *testing.T) {
	t.Parallel()
	nc := bustest.Connect(t, bustest.StartServer(t, natsd.Config{}))
	e := bustest.Publisher(t, nc, events.Config{})
	live, err := nc.SubscribeSync("fh.v1.run.>")
	if err != nil {
		t.Fatal(err)
	}
	at := time.Now().UTC().Truncate(time.Second)
	failure := &run.Failure{Outcome: run.OutcomeFailed, Code: "bad", Message: "no <stock>"}
	ref := run.TaskRef{Task: "price", Key: `k "é`}
	key := "k"
	record := &run.Record{Run: bustest.RunID, Flow: "orders", State: run.Failed, Params: map[string]json.RawMessage{}, Tasks: []run.TaskRecord{{Task: "price", Key: &key, Input: json.RawMessage(`{"a":1}`)}}}
	events := []run.EventData{
		&run.Submitted{Flow: "orders"},
		&run.Started{},
		&run.AttemptStarted{TaskRef: ref, Attempt: 1, Input: json.RawMessage(`"secret"`)},
		&run.AttemptFinished{TaskRef: ref, Attempt: 1, Outcome: run.OutcomeFailed, Failure: failure, RetryAt: at.Add(time.Minute), Output: json.RawMessage(`"secret"`), Duration: 1500 * time.Microsecond},
		&run.TaskEnded{TaskRef: ref, State: run.Skipped},
		&run.CancelRequested{Failure: failure},
		&run.WaitStarted{TaskRef: run.TaskRef{Task: "wait.x"}, Subject: "a.b", Due: at, Deadline: at.Add(time.Second)},
		&run.ChildStarted{TaskRef: ref, Attempt: 2, Child: bustest.RunID, Input: json.RawMessage(`"secret"`)},
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
		task + `"attempt":2,"child":"` + string(bustest.RunID) + `"}`,
		`,"state":"failed",` + failed + `,"record":{"run":"` + string(bustest.RunID) + `","flow":"orders",`,
	}
	for i, data := range events {
		n := bustest.Notice(9, i, data)
		n.Event.At, n.Sum = at, 0xab
		if data.Kind() == run.KindFinished {
			n.Record = record
		}
		bustest.Give(t, e, n)
	}
	// Facts that belong to no run are nobody's to follow.
	bustest.Give(t, e, run.Notice{Revision: 10, Event: run.Event{At: at, Data: &run.Decided{}}})
	bustest.Give(t, e, run.Notice{Revision: 10, Event: run.Event{Run: bustest.RunID, At: at, Data: &run.ScheduleAdvanced{}}})

	got := storedEvents(t, nc)
	if len(got) != len(events) {
		t.Fatalf("%d events are stored, want %d", len(got), len(events))
	}
	for i, event := range got {
		wanted := fmt.Sprintf(`{"id":"0-9-%d-000000ab","kind":"%s","flow":"orders","run":"%s","at":"%s"%s`,
			i, events[i].Kind(), bustest.RunID, at.Format(time.RFC3339), want[i])
		if !strings.HasPrefix(string(event), wanted) {
			t.Errorf("event %d is\n%s\nwant\n%s", i, event, wanted)
		}
		if strings.Contains(string(event), "secret") {
			t.Errorf("event %d carries a task's bytes: %s", i, event)
		}
		m, err := live.NextMsg(bustest.Patience)
		if err != nil {
			t.Fatal(err)
		}
		if m.Subject != bus.EventSubject("orders", bustest.RunID, events[i].Kind()) || string(m.Data) != string(event) {
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
	nc := bustest.Connect(t, bustest.StartServer(t, natsd.Config{}))
	e, err := events.New(nc, 0, events.Config{})
	if err != nil {
		t.Fatal(err)
	}
	other := run.NewID(time.Now())
	for i := range 40 {
		n := bustest.Notice(uint64(i+1), 0, &run.Started{})
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
	bustest.RunPart(t, e.Run)
	if err := e.Drain(t.Context()); err != nil {
		t.Fatal(err)
	}
	got := bustest.Messages(t, nc, bus.StreamEvents)
	if len(got) != 2 || got[0].Subject != "fh.v1.events.orders."+string(bustest.RunID) || got[1].Subject != "fh.v1.events.orders."+string(other) {
		t.Fatalf("messages: %+v", got)
	}
	var ids []string
	for _, event := range storedEvents(t, nc) {
		ids = append(ids, bustest.IdOf(t, event))
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
	for of, stored := range map[events.Of]int{events.OfTasks: 4, events.OfRuns: 2, events.OfNone: 0} {
		t.Run(string(of), func(t *testing.T) {
			t.Parallel()
			s := bustest.StartServer(t, natsd.Config{})
			nc := bustest.ConnectApp(t, s)
			e := bustest.Publisher(t, nc, events.Config{Of: of, Listened: s.Listened})
			listener := bustest.ConnectApp(t, s)
			sub, err := listener.SubscribeSync("fh.v1.run.orders.*.attempt_started")
			if err == nil {
				err = listener.Flush()
			}
			if err != nil {
				t.Fatal(err)
			}
			ref := run.TaskRef{Task: "price"}
			before := nc.Stats().OutMsgs
			bustest.Give(t, e, bustest.Notice(1, 0, &run.Started{}), bustest.Notice(1, 1, &run.AttemptStarted{TaskRef: ref, Attempt: 1}),
				bustest.Notice(1, 2, &run.AttemptFinished{TaskRef: ref, Attempt: 1}), bustest.Notice(1, 3, &run.Finished{State: run.Succeeded}))
			if m, err := sub.NextMsg(bustest.Patience); err != nil || bustest.IdOf(t, m.Data) != "0-1-1-00000000" {
				t.Errorf("live event: %v, %v", m, err)
			}
			if got := len(storedEvents(t, nc)); got != stored {
				t.Errorf("%d events are stored, want %d", got, stored)
			}
			if got := s.Listened("fh.v1.run.orders.x.finished"); got {
				t.Error("somebody listens to the ends of runs")
			}
			if of == events.OfNone {
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
	nc := bustest.Connect(t, bustest.StartServer(t, natsd.Config{}))
	e := bustest.Publisher(t, nc, events.Config{Of: events.OfRuns})
	sub, err := nc.SubscribeSync("fh.v1.run.>")
	if err != nil {
		t.Fatal(err)
	}
	bustest.Give(t, e, bustest.Notice(1, 0, &run.TaskEnded{TaskRef: run.TaskRef{Task: "price"}}), bustest.Notice(1, 1, &run.Finished{State: run.Succeeded}))
	if m, err := sub.NextMsg(bustest.Patience); err != nil || bustest.IdOf(t, m.Data) != "0-1-1-00000000" {
		t.Errorf("live event: %v, %v", m, err)
	}
}

func TestEventsTruncateRecord(t *testing.T) {
	t.Parallel()
	nc := bustest.Connect(t, bustest.StartServer(t, natsd.Config{}))
	e := bustest.Publisher(t, nc, events.Config{})
	big := json.RawMessage(`"` + strings.Repeat("x", 5<<20) + `"`)
	finished := func(revision uint64, output json.RawMessage, in, out json.RawMessage) run.Notice {
		n := bustest.Notice(revision, 0, &run.Finished{State: run.Succeeded})
		n.Record = &run.Record{Run: bustest.RunID, Flow: "orders", State: run.Succeeded, Output: output, Tasks: []run.TaskRecord{{Task: "price", Input: in, Output: out}}}
		return n
	}
	first := finished(1, json.RawMessage(`1`), big, big)
	bustest.Give(t, e, first, finished(2, json.RawMessage(`[`+string(big)+`,`+string(big)+`]`), nil, nil), bustest.Notice(3, 0, &run.Started{}))
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
	nc := bustest.Connect(t, bustest.StartServer(t, natsd.Config{}))
	var log bustest.LogLines
	e := bustest.Publisher(t, nc, events.Config{Log: log.Logger()})
	huge := &run.Failure{Message: strings.Repeat("x", 9<<20)}
	bustest.Give(t, e, bustest.Notice(1, 0, &run.Started{}), bustest.Notice(1, 1, &run.CancelRequested{Failure: huge}), bustest.Notice(1, 2, &run.Finished{State: run.Canceled}))
	if got := storedEvents(t, nc); len(got) != 2 {
		t.Errorf("%d events are stored, want 2", len(got))
	}
	if log.Count("events cannot be stored") != 1 {
		t.Error("the log does not tell")
	}
}

func TestEventsBadFlow(t *testing.T) {
	t.Parallel()
	e := bustest.Publisher(t, bustest.Connect(t, bustest.StartServer(t, natsd.Config{})), events.Config{})
	n := bustest.Notice(1, 0, &run.Started{})
	n.Flow = "a.b"
	if err := e.Committed(t.Context(), n); err == nil {
		t.Error("Committed took a flow whose name is no token")
	}
}

// The engine never waits for events: when nothing is published they are dropped, and
// the log says so. What comes later is published.
func TestEventsNeverHoldBack(t *testing.T) {
	t.Parallel()
	s := bustest.StartServer(t, natsd.Config{})
	nc := bustest.Connect(t, s)
	var log bustest.LogLines
	e, err := events.New(nc, 0, events.Config{Log: log.Logger()})
	if err != nil {
		t.Fatal(err)
	}
	large := &run.Failure{Message: strings.Repeat("x", 1<<20)}
	for i := range 100 { // Run is not there to publish them
		if err := e.Committed(t.Context(), bustest.Notice(uint64(i+1), 0, &run.CancelRequested{Failure: large})); err != nil {
			t.Fatal(err)
		}
	}
	bustest.RunPart(t, e.Run)
	bustest.Eventually(t, "the log tells", func() bool { return log.Count("events were dropped") == 1 })
	bustest.Give(t, e, bustest.Notice(200, 0, &run.Started{}))
	got := storedEvents(t, nc)
	if len(got) < 20 || len(got) > 40 || bustest.IdOf(t, got[len(got)-1]) != "0-200-0-00000000" {
		t.Errorf("%d events are stored, the last of them %.60s", len(got), got[len(got)-1])
	}
}

// A stream that is deleted or purged is no harm: it is made again, the log says so,
// and nothing waits for it.
func TestEventsStreamIsGone(t *testing.T) {
	t.Parallel()
	nc := bustest.Connect(t, bustest.StartServer(t, natsd.Config{}))
	var log bustest.LogLines
	bustest.KeepStreams(t, nc, &log, bus.StreamConfig{EventBytes: 1 << 20})
	e := bustest.Publisher(t, nc, events.Config{Timeout: time.Second, Log: log.Logger()})
	js := bustest.JetStream(t, nc)
	bustest.Give(t, e, bustest.Notice(1, 0, &run.Started{}))
	if err := js.DeleteStream(t.Context(), bus.StreamEvents); err != nil {
		t.Fatal(err)
	}
	bustest.Give(t, e, bustest.Notice(2, 0, &run.Started{}), bustest.Notice(2, 1, &run.Finished{State: run.Succeeded}))
	if got := storedEvents(t, nc); len(got) != 2 {
		t.Errorf("%d events are stored, want 2", len(got))
	}
	if got := bustest.StreamLimits(t, nc, bus.StreamEvents); got.Bytes != 1<<20 {
		t.Errorf("the new stream has %+v", got)
	}
	if log.Count("level=ERROR") != 1 || log.Count("a stream was removed") != 1 {
		t.Error("the log does not tell")
	}
	stream, err := js.Stream(t.Context(), bus.StreamEvents)
	if err == nil {
		err = stream.Purge(t.Context())
	}
	if err != nil {
		t.Fatal(err)
	}
	bustest.Give(t, e, bustest.Notice(3, 0, &run.Started{}))
	if got := storedEvents(t, nc); len(got) != 1 {
		t.Errorf("%d events are stored after a purge, want 1", len(got))
	}
}

func TestEventsOverRestarts(t *testing.T) {
	t.Parallel()
	x := bustest.NewExternal(t)
	x.Start()
	var log bustest.LogLines
	nc := x.Connect(&log, x.Address())
	if err := bus.ProvisionEvents(t.Context(), nc, bus.StreamConfig{Replicas: 1}); err != nil {
		t.Fatal(err)
	}
	e := bustest.Publisher(t, nc, events.Config{Timeout: 200 * time.Millisecond, Log: log.Logger()})
	const each = 150
	for round := range 3 {
		var giver sync.WaitGroup
		giver.Go(func() {
			for i := range each {
				if err := e.Committed(t.Context(), bustest.Notice(uint64(round+1), i, &run.Started{})); err != nil {
					t.Error(err)
				}
			}
		})
		x.Stop()
		x.Start()
		giver.Wait()
	}
	bustest.Give(t, e, bustest.Notice(9, 0, &run.Finished{State: run.Succeeded}))
	bustest.Eventually(t, "the stream goes on", func() bool {
		all := storedEvents(t, nc)
		return slices.ContainsFunc(all, func(event json.RawMessage) bool { return bustest.IdOf(t, event) == "0-9-0-00000000" })
	})
}

func BenchmarkEvents(b *testing.B) {
	s := bustest.StartServer(b, natsd.Config{})
	e := bustest.Publisher(b, bustest.ConnectApp(b, s), events.Config{Listened: s.Listened})
	index := 0
	for b.Loop() {
		if err := e.Committed(b.Context(), bustest.Notice(1, index, &run.Started{})); err != nil {
			b.Fatal(err)
		}
		index++
	}
	if err := e.Drain(b.Context()); err != nil {
		b.Fatal(err)
	}
	b.ReportMetric(float64(index)/b.Elapsed().Seconds(), "events/s")
}
