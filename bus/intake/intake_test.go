package intake_test

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/nats-io/nats.go"

	"github.com/flowhost/flowhost/bus"
	"github.com/flowhost/flowhost/bus/api"
	"github.com/flowhost/flowhost/bus/intake"
	"github.com/flowhost/flowhost/bus/internal/bustest"
	"github.com/flowhost/flowhost/bus/internal/jskit"
	"github.com/flowhost/flowhost/bus/natsd"
	"github.com/flowhost/flowhost/run"
)

var errBusy = errors.New("the engine is busy")

func TestIntakeRequests(t *testing.T) {
	t.Parallel()
	nc := bustest.Connect(t, bustest.StartServer(t, natsd.Config{}))
	s := &bustest.Starter{
		OnSubmit: func(r run.Request) error {
			if r.Flow == "busy" {
				return errBusy
			}
			return nil
		},
	}
	bustest.RunIntake(t, nc, s, nil, intake.Config{})
	wait := func(text string) nats.Header { return nats.Header{bus.HeaderWait: {text}} }
	id := string(bustest.RunID)
	for name, tt := range map[string]struct {
		subject, body string
		header        nats.Header
		answer, code  string // the answer's beginning
	}{
		"accepted":        {subject: "fh.v1.api.run.orders", body: `{"a":1}`, answer: `{"run":"` + id + `"}`},
		"folder's flow":   {subject: "fh.v1.api.run.billing/charge", answer: `{"run":"` + id + `"}`},
		"filtered":        {subject: "fh.v1.api.run.orders", body: `"filtered"`, answer: `{"run":null,"accepted":false}`},
		"filtered, wait":  {subject: "fh.v1.api.run.orders", body: `"filtered"`, header: wait("1s"), answer: `{"run":null,"accepted":false}`},
		"record":          {subject: "fh.v1.api.run.orders", header: wait("30s"), answer: `{"run":"` + id + `","flow":"orders","state":"succeeded"`},
		"malformed":       {subject: "fh.v1.api.run.orders", body: `{`, answer: `{"error":{"code":"payload","message":"the message is not JSON"}}`, code: "payload"},
		"unknown flow":    {subject: "fh.v1.api.run.unknown", answer: `{"error":{"code":"unknown_flow"`, code: "unknown_flow"},
		"engine busy":     {subject: "fh.v1.api.run.busy", answer: `{"error":{"code":"unavailable","message":"the engine is busy"}}`, code: "unavailable"},
		"wait: no number": {subject: "fh.v1.api.run.orders", header: wait("soon"), answer: `{"error":{"code":"header"`, code: "header"},
		"wait: negative":  {subject: "fh.v1.api.run.orders", header: wait("-1s"), answer: `{"error":{"code":"header"`, code: "header"},
		"wait: too long":  {subject: "fh.v1.api.run.orders", header: wait("25h"), answer: `{"error":{"code":"header"`, code: "header"},
	} {
		t.Run(name, func(t *testing.T) {
			answer, code := bustest.Request(t, nc, tt.subject, tt.body, tt.header)
			if !strings.HasPrefix(answer, tt.answer) || code != tt.code {
				t.Errorf("answer %s, code %q; want %s…, %q", answer, code, tt.answer, tt.code)
			}
			if !json.Valid([]byte(answer)) {
				t.Error("the answer is not JSON")
			}
		})
	}
}

func TestIntakeRequestOfFlow(t *testing.T) {
	t.Parallel()
	nc := bustest.Connect(t, bustest.StartServer(t, natsd.Config{}))
	s := &bustest.Starter{}
	bustest.RunIntake(t, nc, s, nil, intake.Config{})
	before := time.Now()
	bustest.Request(t, nc, "fh.v1.api.run.orders", "", nats.Header{"Nats-Msg-Id": {"1"}, "X-Source": {"a", "b"}})
	got := s.Accepted()[0]
	if at := got.Trigger.Time; at.Before(before.Add(-time.Second)) || at.After(time.Now()) || at.Location() != time.UTC {
		t.Errorf("time = %s", at)
	}
	got.Trigger.Time = time.Time{}
	want := run.Request{Flow: "orders", Trigger: run.Trigger{
		Kind: run.TriggerManual, Subject: "fh.v1.api.run.orders", Payload: json.RawMessage("null"),
		Headers: map[string][]string{"X-Source": {"a", "b"}},
	}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("request (-want +got):\n%s", diff)
	}
}

func TestIntakeWaitEnds(t *testing.T) {
	t.Parallel()
	nc := bustest.Connect(t, bustest.StartServer(t, natsd.Config{}))
	waiting := make(chan struct{}, 8)
	s := &bustest.Starter{OnWait: func(ctx context.Context, _ run.ID) (*run.Record, error) {
		waiting <- struct{}{}
		<-ctx.Done()
		return nil, ctx.Err()
	}}
	stop := bustest.RunIntake(t, nc, s, nil, intake.Config{Waiting: 1, Grace: 50 * time.Millisecond})
	id := string(bustest.RunID)

	answer, code := bustest.Request(t, nc, "fh.v1.api.run.orders", "", nats.Header{bus.HeaderWait: {"20ms"}})
	if !strings.HasPrefix(answer, `{"run":"`+id+`","error":{"code":"timeout"`) || code != api.CodeTimeout {
		t.Errorf("answer after the wait: %s, %q", answer, code)
	}
	<-waiting

	// One request waits: others are answered meanwhile, but no second one may wait.
	inbox := nc.NewInbox()
	sub, err := nc.SubscribeSync(inbox)
	if err != nil {
		t.Fatal(err)
	}
	if err := nc.PublishMsg(&nats.Msg{Subject: "fh.v1.api.run.orders", Reply: inbox, Header: nats.Header{bus.HeaderWait: {"1h"}}}); err != nil {
		t.Fatal(err)
	}
	<-waiting
	if _, code := bustest.Request(t, nc, "fh.v1.api.run.orders", "", nats.Header{bus.HeaderWait: {"1s"}}); code != api.CodeBusy {
		t.Errorf("code of a second waiting request = %q, want busy", code)
	}
	if answer, code := bustest.Request(t, nc, "fh.v1.api.run.orders", "", nil); code != "" || answer != `{"run":"`+id+`"}` {
		t.Errorf("answer while another request waits: %s, %q", answer, code)
	}

	stop()
	msg, err := sub.NextMsg(bustest.Patience)
	if err != nil || msg.Header.Get("Nats-Service-Error-Code") != api.CodeUnavailable || !strings.HasPrefix(string(msg.Data), `{"run":"`+id) {
		t.Errorf("answer to the waiting request at the stop: %v, %v", msg, err)
	}
	if n := len(s.Accepted()); n != 3 {
		t.Errorf("%d runs were started, want 3", n)
	}
}

// Nobody is told of a run that may not be durable.
func TestIntakeDoesNotNameWhatIsNotDurable(t *testing.T) {
	t.Parallel()
	nc := bustest.Connect(t, bustest.StartServer(t, natsd.Config{}))
	s := &bustest.Starter{
		OnWait: func(ctx context.Context, _ run.ID) (*run.Record, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		},
		OnSync: func() error { return errors.New("the engine has ended") },
	}
	bustest.RunIntake(t, nc, s, nil, intake.Config{})
	answer, code := bustest.Request(t, nc, "fh.v1.api.run.orders", "", nats.Header{bus.HeaderWait: {"1ms"}})
	if code != api.CodeUnavailable || strings.Contains(answer, string(bustest.RunID)) {
		t.Errorf("answer %s, %q", answer, code)
	}
}

// A record that is too large for a message loses its tasks' bytes first.
func TestIntakeLargeRecord(t *testing.T) {
	t.Parallel()
	nc := bustest.Connect(t, bustest.StartServer(t, natsd.Config{}))
	big := json.RawMessage(`"` + strings.Repeat("x", jskit.MaxPayload) + `"`)
	var record run.Record
	s := &bustest.Starter{OnWait: func(context.Context, run.ID) (*run.Record, error) { return &record, nil }}
	bustest.RunIntake(t, nc, s, nil, intake.Config{})
	wait := nats.Header{bus.HeaderWait: {"10s"}}

	record = run.Record{Run: bustest.RunID, State: run.Succeeded, Output: json.RawMessage("7"), Tasks: []run.TaskRecord{{Task: "a", Output: big}}}
	answer, code := bustest.Request(t, nc, "fh.v1.api.run.orders", "", wait)
	var got run.Record
	if err := json.Unmarshal([]byte(answer), &got); err != nil || code != "" || !got.Truncated || string(got.Output) != "7" || got.Tasks[0].Task != "a" {
		t.Errorf("answer %.200s, code %q, %v", answer, code, err)
	}

	record = run.Record{Run: bustest.RunID, State: run.Succeeded, Output: big}
	answer, code = bustest.Request(t, nc, "fh.v1.api.run.orders", "", wait)
	if code != api.CodeTooLarge || !strings.HasPrefix(answer, `{"run":"`+string(bustest.RunID)+`","error":{"code":"too_large"`) {
		t.Errorf("answer %.200s, code %q", answer, code)
	}
}

// A soft stop takes no more requests and lets the one under way be answered.
func TestIntakeSoftStop(t *testing.T) {
	t.Parallel()
	nc := bustest.Connect(t, bustest.StartServer(t, natsd.Config{}))
	inside, release := make(chan struct{}), make(chan struct{})
	s := &bustest.Starter{OnSubmit: func(run.Request) error { close(inside); <-release; return nil }}
	stop := bustest.RunIntake(t, nc, s, nil, intake.Config{Flows: func() []api.FlowInfo { return nil }})
	var asker sync.WaitGroup
	asker.Go(func() {
		if answer, code := bustest.Request(t, nc, "fh.v1.api.run.orders", "", nil); code != "" {
			t.Errorf("answer of the request under way: %s", answer)
		}
	})
	<-inside
	asker.Go(stop)
	bustest.Eventually(t, "no more requests are taken", func() bool {
		_, err := nc.Request(bus.APISubject(api.VerbFlows), nil, time.Second)
		return errors.Is(err, nats.ErrNoResponders)
	})
	close(release)
	asker.Wait()
}

func TestIntakeCoreMessages(t *testing.T) {
	t.Parallel()
	nc := bustest.Connect(t, bustest.StartServer(t, natsd.Config{}))
	s := &bustest.Starter{}
	bustest.RunIntake(t, nc, s, []intake.Subscription{
		{Flow: "orders", Trigger: "any", Subject: "orders.*"},
		{Flow: "audit", Trigger: "new", Subject: "orders.new"},
	}, intake.Config{})

	answer, code := bustest.Request(t, nc, "orders.new", `{"n":1}`, nil)
	if answer != `{"run":"`+string(bustest.RunID)+`"}` || code != "" {
		t.Errorf("answer = %s, %q", answer, code)
	}
	if _, code := bustest.Request(t, nc, "orders.old", `{`, nil); code != run.RequestPayload {
		t.Errorf("code = %q, want payload", code)
	}
	// Overlapping subjects reach each trigger.
	bustest.Eventually(t, "both flows are started", func() bool { return len(s.Accepted()) == 2 })
	var got []string
	for _, r := range s.Accepted() {
		got = append(got, r.Flow+" "+r.Trigger.Name+" "+string(r.Trigger.Kind)+" "+r.Trigger.Subject+" "+string(r.Trigger.Payload))
	}
	slices.Sort(got)
	want := []string{`audit new message orders.new {"n":1}`, `orders any message orders.new {"n":1}`}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("requests (-want +got):\n%s", diff)
	}
}

// The sender chooses the reply subject: it must not lead into a stream.
func TestIntakeAnswersInboxesOnly(t *testing.T) {
	t.Parallel()
	nc := bustest.Connect(t, bustest.StartServer(t, natsd.Config{}))
	s := &bustest.Starter{}
	bustest.RunIntake(t, nc, s, nil, intake.Config{})
	for _, reply := range []string{"fh.v1.events.a.b", "$JS.API.STREAM.PURGE.FH_EVENTS"} {
		if err := nc.PublishRequest("fh.v1.api.run.orders", reply, nil); err != nil {
			t.Fatal(err)
		}
	}
	s.Payloads(t, 2)
	if _, code := bustest.Request(t, nc, "fh.v1.api.run.orders", "", nil); code != "" {
		t.Errorf("code = %q", code)
	}
	if got := bustest.Messages(t, nc, bus.StreamEvents); len(got) != 0 {
		t.Errorf("an answer became an event: %s", got[0].Data)
	}
}

func TestIntakeConfigErrors(t *testing.T) {
	t.Parallel()
	nc := bustest.Connect(t, bustest.StartServer(t, natsd.Config{}))
	for name, trigger := range map[string]intake.Subscription{
		"no subject":       {Flow: "a", Trigger: "b"},
		"bad subject":      {Flow: "a", Trigger: "b", Subject: "a..b"},
		"bad flow":         {Flow: "a.b", Trigger: "b", Subject: "a"},
		"bad trigger":      {Flow: "a", Trigger: "b c", Subject: "a"},
		"reserved subject": {Flow: "a", Trigger: "b", Subject: "fh.v1.run.>"},
		"an inbox":         {Flow: "a", Trigger: "b", Subject: "_INBOX.>"},
		"everything":       {Flow: "a", Trigger: "b", Subject: ">"},
		"reserved stream":  {Flow: "a", Trigger: "b", Stream: "FH_EVENTS"},
		"reserved filter":  {Flow: "a", Trigger: "b", Stream: "A", Subject: "*.x"},
		"bad stream":       {Flow: "a", Trigger: "b", Stream: "A.B"},
		"bad durable":      {Flow: "a", Trigger: "b", Stream: "A", Durable: "x.y"},
		"bad filter":       {Flow: "a", Trigger: "b", Stream: "A", Subject: "x..y"},
	} {
		if _, err := intake.New(nc, &bustest.Starter{}, []intake.Subscription{trigger}, intake.Config{}); err == nil {
			t.Errorf("%s: NewIntake took %+v", name, trigger)
		}
	}
}

func TestIntakeClosedConnection(t *testing.T) {
	t.Parallel()
	nc := bustest.Connect(t, bustest.StartServer(t, natsd.Config{}))
	in, err := intake.New(nc, &bustest.Starter{}, nil, intake.Config{})
	if err != nil {
		t.Fatal(err)
	}
	nc.Close()
	if err := in.Run(t.Context()); err == nil {
		t.Error("Run does not notice that the connection is closed")
	}
}

// A server may go away between the start of a host and that of its intake.
func TestIntakeWaitsForTheServer(t *testing.T) {
	t.Parallel()
	for name, comes := range map[string]bool{"it comes back": true, "it stays away": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := bustest.NewExternal(t)
			e.Start()
			var log bustest.LogLines
			nc := e.Connect(&log, e.Address())
			e.Stop()
			bustest.Eventually(t, "the connection is lost", func() bool { return !nc.IsConnected() })
			in, err := intake.New(nc, &bustest.Starter{}, nil, intake.Config{Log: log.Logger()})
			if err != nil {
				t.Fatal(err)
			}
			ctx, stop := context.WithCancel(t.Context())
			defer stop()
			ended := make(chan error, 1)
			go func() { ended <- in.Run(ctx) }()
			bustest.Eventually(t, "the wait is logged", func() bool { return log.Count("waiting to listen to messages") == 1 })
			if comes {
				e.Start()
				<-in.Ready()
				if answer, _ := bustest.Request(t, nc, "fh.v1.api.run.orders", "{}", nil); answer != `{"run":"`+string(bustest.RunID)+`"}` {
					t.Errorf("answer %s", answer)
				}
			}
			stop()
			if err := <-ended; err != nil {
				t.Errorf("Run = %v", err)
			}
		})
	}
}

func TestServiceTellsOfTheHost(t *testing.T) {
	t.Parallel()
	nc := bustest.Connect(t, bustest.StartServer(t, natsd.Config{}))
	bustest.RunIntake(t, nc, &bustest.Starter{}, nil, intake.Config{
		Stats: func() any { return map[string]int{"running": 3} }, Flows: func() []api.FlowInfo { return nil },
	})
	answer, err := nc.Request("$SRV.STATS.flowhost", nil, 10*time.Second)
	if err != nil {
		t.Fatal(err)
	}
	var stats struct {
		Endpoints []struct {
			Name string          `json:"name"`
			Data json.RawMessage `json:"data"`
		} `json:"endpoints"`
	}
	if err := json.Unmarshal(answer.Data, &stats); err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for _, e := range stats.Endpoints {
		got[e.Name] = string(e.Data)
	}
	if diff := cmp.Diff(map[string]string{"run": `{"running":3}`, "flows": "null", "deadletters": "null", "send_deadletter": "null", "discard_deadletter": "null"}, got); diff != "" {
		t.Error(diff)
	}
}
