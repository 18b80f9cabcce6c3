package natsd_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/flowhost/flowhost/bus"
	"github.com/flowhost/flowhost/bus/intake"
	"github.com/flowhost/flowhost/bus/internal/bustest"
	"github.com/flowhost/flowhost/bus/natsd"
	"github.com/flowhost/flowhost/run"
)

// fortress is a server with something in every stream, an intake that answers, and
// ears where no stranger's message may arrive.
type fortress struct {
	t           *testing.T
	server      *natsd.Server
	dir         string
	engine, app *nats.Conn
	starter     *bustest.Starter

	mu    sync.Mutex
	heard []string
}

// flowSubject is one on which a flow listens itself.
const flowSubject = "orders.new"

func newFortress(t *testing.T) *fortress {
	t.Helper()
	f := &fortress{t: t, dir: t.TempDir(), starter: &bustest.Starter{}}
	f.server = bustest.StartServer(t, natsd.Config{Dir: f.dir, Listen: "127.0.0.1:0", ClientSubjects: []string{flowSubject}})
	f.engine, f.app = bustest.Connect(t, f.server), bustest.ConnectApp(t, f.server)
	bustest.ConnectJournal(t, f.server)
	bustest.Stream(t, f.app, "MINE", "mine.>")
	for subject, nc := range map[string]*nats.Conn{
		bus.JournalSubject(0): f.engine, bus.DeadLetterSubject("a"): f.engine, bus.HistorySubject("a", run.Failed): f.engine,
		bus.LogSubject("a", "x"): f.engine, "mine.a": f.app, bus.EventsSubject("a", "b"): f.app,
	} {
		if _, err := bustest.JetStream(t, nc).Publish(t.Context(), subject, []byte("kept")); err != nil {
			t.Fatalf("%s: %v", subject, err)
		}
	}
	bustest.RunIntake(t, f.engine, f.starter, []intake.Subscription{{Flow: "orders", Trigger: "new", Subject: flowSubject}}, intake.Config{
		App: f.app, Operator: natsd.AccountOperator, Connected: f.server.Connected, Control: bustest.NewControl(),
	})
	// A consumer of each account with a message under way, which an acknowledgement
	// from outside would end.
	for name, nc := range map[string]*nats.Conn{bus.StreamDeadLetter: f.engine, "MINE": f.app} {
		consumer, err := bustest.JetStream(t, nc).CreateConsumer(t.Context(), name, jetstream.ConsumerConfig{Durable: "reader", AckPolicy: jetstream.AckExplicitPolicy, AckWait: bustest.Patience * 100})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := consumer.Next(jetstream.FetchMaxWait(bustest.Patience)); err != nil {
			t.Fatal(err)
		}
	}
	f.listen(f.engine, "_INBOX_engine.victim.>", "_INBOX_operator.>", "_INBOX_client.>", "_INBOX.>", "fh.v1.journal.>",
		"fh.v1.history.>", "fh.v1.log.>", "fh.v1.deadletter.>", "fh.v1.flush.>", "$JS.API.>", "$JS.ACK.>", "$JS.FC.>")
	f.listen(f.app, "_INBOX_engine.victim.>", "_INBOX_client.>", "_INBOX.>", "mine.>", "$JS.API.STREAM.>", "$JS.API.CONSUMER.>", "$JS.ACK.>", "fh.v1.run.>")
	return f
}

func (f *fortress) listen(nc *nats.Conn, subjects ...string) {
	f.t.Helper()
	for _, subject := range subjects {
		_, err := nc.Subscribe(subject, func(m *nats.Msg) {
			if strings.HasPrefix(m.Reply, "_INBOX_engine.") || strings.HasPrefix(m.Subject, "$JS.API.") && nc == f.engine && strings.HasPrefix(m.Reply, "_INBOX_engine.") {
				return // the engine's own
			}
			f.mu.Lock()
			defer f.mu.Unlock()
			f.heard = append(f.heard, fmt.Sprintf("%s in %s: %.60q", m.Subject, nc.Opts.Name, m.Data))
		})
		if err != nil {
			f.t.Fatal(err)
		}
	}
	if err := nc.Flush(); err != nil {
		f.t.Fatal(err)
	}
}

func (f *fortress) noise() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.heard)
}

// state is all that nobody outside may change: configurations, first and last
// sequences, consumers.
func (f *fortress) state(leaveOut ...string) map[string]string {
	f.t.Helper()
	all := map[string]string{}
	for _, nc := range []*nats.Conn{f.engine, f.app} {
		js := bustest.JetStream(f.t, nc)
		streams := js.ListStreams(f.t.Context())
		for info := range streams.Info() {
			name := info.Config.Name
			state := fmt.Sprintf("%d-%d (%d)", info.State.FirstSeq, info.State.LastSeq, info.State.Msgs)
			if slices.Contains(leaveOut, name) {
				state = ""
			}
			all[nc.Opts.Name+"/"+name] = fmt.Sprintf("%+v %s", info.Config, state)
			s, err := js.Stream(f.t.Context(), name)
			if err != nil {
				f.t.Fatal(err)
			}
			consumers := s.ListConsumers(f.t.Context())
			for c := range consumers.Info() {
				if c.Config.Durable == "" {
					continue // a reader's of the engine
				}
				all[nc.Opts.Name+"/"+name+"/"+c.Name] = fmt.Sprintf("%+v pending %d", c.Config, c.NumAckPending)
			}
			if err := consumers.Err(); err != nil {
				f.t.Fatal(err)
			}
		}
		if err := streams.Err(); err != nil {
			f.t.Fatal(err)
		}
	}
	return all
}

// replies are subjects that a sender names for the answer to land where it may not
// publish.
func replies() []string {
	var all []string
	streams := []string{bus.StreamJournal, bus.StreamTriggers, bus.StreamHistory, bus.StreamDeadLetter, bus.StreamLogs, bus.StreamEvents, "MINE", "OBJ_FH_BLOBS", "OBJ_FH_SNAPSHOTS", "NEW"}
	for _, s := range streams {
		for _, call := range []string{"PURGE", "DELETE", "UPDATE", "CREATE", "MSG.DELETE", "MSG.GET", "SNAPSHOT", "RESTORE", "INFO", "LEADER.STEPDOWN", "PEER.REMOVE"} {
			all = append(all, "$JS.API.STREAM."+call+"."+s)
		}
		for _, call := range []string{"CREATE.%s", "CREATE.%s.new", "DURABLE.CREATE.%s.new", "DELETE.%s.reader", "MSG.NEXT.%s.reader", "PAUSE.%s.reader", "RESET.%s.reader", "UNPIN.%s.reader"} {
			all = append(all, "$JS.API.CONSUMER."+fmt.Sprintf(call, s))
		}
		all = append(all, "$JS.ACK."+s+".reader.1.1.1.1700000000000000000.0", "$JS.FC."+s+".reader.x", "$JS.API.DIRECT.GET."+s)
	}
	return append(all,
		"$JS.API.INFO", "$JS.API.ACCOUNT.PURGE.ENGINE", "$JS.API.SERVER.REMOVE",
		"fh.v1.journal.0", "fh.v1.history.a.failed", "fh.v1.historypart.a.failed.1", "fh.v1.log.a.x", "fh.v1.deadletter.a", "fh.v1.flush.FH_HISTORY",
		"$O.FH_BLOBS.C.x", "$O.FH_BLOBS.M.x", "$O.FH_SNAPSHOTS.C.x",
		"_INBOX_engine.victim.1", "_INBOX_operator.victim.1", "_INBOX.victim.1",
		"_R_.aaaaaa.bbbbbb", "_GR_.x.y.z", "$GR.x.y", "$SYS.REQ.SERVER.PING", "$SYS.REQ.ACCOUNT.PING.CONNZ", "$SYS.REQ.USER.INFO", "$SRV.PING", "$NRG.V.x", "$MQTT.msgs.x",
		"fh.v1.deadletter.>", ">", "*",
	)
}

// headers are sets of headers that have a meaning to a server or a stream.
func headers() []nats.Header {
	return []nats.Header{
		nil,
		{"Nats-Trace-Dest": {"fh.v1.journal.0"}},
		{"Nats-Trace-Dest": {"_INBOX_engine.victim.1"}, "Nats-Trace-Only": {"true"}},
		{"Nats-Rollup": {"all"}}, {"Nats-Rollup": {"sub"}}, {"Nats-TTL": {"1s"}}, {"Nats-Incr": {"+1"}},
		{"Nats-Schedule": {"@every 1s"}, "Nats-Schedule-Target": {"fh.v1.trigger.b"}},
		{"Nats-Batch-Id": {"x"}, "Nats-Batch-Sequence": {"1"}, "Nats-Batch-Commit": {"1"}},
		{"Nats-Request-Info": {`{"acc":"APP","user":"operator","id":1}`}},
		{"Nats-Expected-Last-Sequence": {"0"}}, {"Nats-Expected-Stream": {"MINE"}}, {"Nats-Msg-Id": {"x"}},
		{"Status": {"503"}}, {"traceparent": {"00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"}},
	}
}

// attack publishes on every allowed subject with every reply, plain and with headers.
func attack(t *testing.T, nc *nats.Conn, publish []string) (tried int) {
	t.Helper()
	bodies := map[bool]string{false: "{}", true: `{"name":"NEW","subjects":["fh.v1.history.>"]}`}
	for _, subject := range publish {
		for i, reply := range append(replies(), "") {
			all := headers()
			if i%8 != 0 && reply != "" { // each header with some replies, each reply plain and with one of them
				all = []nats.Header{nil, all[i%len(all)]}
			}
			for _, header := range all {
				msg := &nats.Msg{Subject: subject, Reply: reply, Header: maps.Clone(header), Data: []byte(bodies[tried%2 == 1])}
				if err := nc.PublishMsg(msg); err != nil && !errors.Is(err, nats.ErrBadSubject) {
					t.Fatalf("%s with reply %s: %v", subject, reply, err)
				}
				tried++
			}
		}
	}
	if err := nc.FlushTimeout(bustest.Patience); err != nil {
		t.Fatal(err)
	}
	return tried
}

// settled waits until what the server and the engine still had to answer is answered.
// Requests are repeated: an answer to a reply subject with a wildcard makes the server
// forget the ways back of all requests of the sender's account.
func (f *fortress) settled(ask *nats.Conn) {
	f.t.Helper()
	for _, subject := range []string{"fh.v1.api.run.last", "fh.v1.trigger.last"} {
		bustest.Eventually(f.t, subject+" is answered", func() bool {
			answer, err := ask.Request(subject, []byte(`"last"`), time.Second)
			return err == nil && answer.Header.Get("Nats-Service-Error-Code") == ""
		})
	}
	bustest.Eventually(f.t, "the last trigger is taken", func() bool {
		return slices.ContainsFunc(f.starter.Accepted(), func(r run.Request) bool {
			return r.Trigger.Kind == run.TriggerMessage && string(r.Trigger.Payload) == `"last"`
		})
	})
	for _, nc := range []*nats.Conn{f.engine, f.app} {
		if err := nc.FlushTimeout(bustest.Patience); err != nil {
			f.t.Fatal(err)
		}
	}
}

func TestClientReachesNothingByReply(t *testing.T) {
	t.Parallel()
	f := newFortress(t)
	client := bustest.Dial(t, bustest.ReadCredentials(t, f.dir, natsd.ClientContext), nats.ErrorHandler(func(*nats.Conn, *nats.Subscription, error) {}))
	before := f.state(bus.StreamTriggers)
	verbs := []string{"run.a", "list", "get", "watch", "cancel", "retry", "deadletters", "send_deadletter", "discard_deadletter", "nothing", "run.a.b"}
	publish := []string{flowSubject, bus.TriggerSubject("a"), "fh.v1.trigger.a.b"}
	for _, v := range verbs {
		publish = append(publish, "fh.v1.api."+v)
	}
	tried := attack(t, client, publish)
	f.settled(client)
	t.Logf("%d messages", tried)
	if diff := diffStates(before, f.state(bus.StreamTriggers)); diff != "" {
		t.Error(diff)
	}
	for _, h := range f.noise() {
		if !strings.HasPrefix(h, "$JS.API.") { // the engine's own requests, whose replies are replaced on the way
			t.Errorf("heard %s", h)
		}
	}
}

func diffStates(before, after map[string]string) string {
	var b strings.Builder
	for name, state := range before {
		if after[name] != state {
			fmt.Fprintf(&b, "%s was\n  %s\nand is\n  %s\n", name, state, after[name])
		}
	}
	for name := range after {
		if before[name] == "" {
			fmt.Fprintf(&b, "%s is new\n", name)
		}
	}
	return b.String()
}

func TestOperatorReachesNothingOfTheEngine(t *testing.T) {
	t.Parallel()
	f := newFortress(t)
	operator := bustest.Dial(t, bustest.ReadCredentials(t, f.dir, natsd.OperatorContext), nats.ErrorHandler(func(*nats.Conn, *nats.Subscription, error) {}))
	ofEngine := func() map[string]string {
		all := f.state(bus.StreamTriggers)
		maps.DeleteFunc(all, func(name, _ string) bool { return !strings.HasPrefix(name, f.engine.Opts.Name+"/") })
		return all
	}
	before := ofEngine()
	publish := []string{
		flowSubject, bus.TriggerSubject("a"), "fh.v1.api.run.a", "fh.v1.api.list", "fh.v1.api.deadletters", "fh.v1.api.send_deadletter", "fh.v1.api.drain", "$SRV.INFO.flowhost", "$SRV.PING",
		"$JS.API.STREAM.INFO.MINE", "$JS.API.STREAM.MSG.GET.MINE", "$JS.API.CONSUMER.MSG.NEXT.MINE.reader",
		"$JS.API.STREAM.DELETE.FH_HISTORY", "$JS.API.STREAM.PURGE.FH_JOURNAL", "fh.v1.journal.0", "fh.v1.history.a.failed", "$O.FH_BLOBS.C.x",
	}
	t.Logf("%d messages", attack(t, operator, publish))
	f.settled(operator)
	if diff := diffStates(before, ofEngine()); diff != "" {
		t.Error(diff)
	}
	for _, h := range f.noise() {
		if strings.Contains(h, " in "+f.engine.Opts.Name+":") && !strings.HasPrefix(h, "$JS.API.") {
			t.Errorf("heard %s", h)
		}
	}
}

// What a client waits for is not lost when others change what it may publish on.
func TestAnswersSurviveNewRights(t *testing.T) {
	t.Parallel()
	f := newFortress(t)
	release := make(chan struct{})
	f.starter.OnWait = func(context.Context, run.ID) (*run.Record, error) {
		<-release
		return &run.Record{State: run.Succeeded}, nil
	}
	client := bustest.Dial(t, bustest.ReadCredentials(t, f.dir, natsd.ClientContext))
	answers, err := client.SubscribeSync("_INBOX_client.answers.*")
	if err != nil {
		t.Fatal(err)
	}
	for _, subject := range []string{"fh.v1.api.run.a", flowSubject} {
		msg := &nats.Msg{Subject: subject, Reply: "_INBOX_client.answers.1", Data: []byte("1"), Header: nats.Header{bus.HeaderWait: {"10m"}}}
		if err := client.PublishMsg(msg); err != nil {
			t.Fatal(err)
		}
	}
	bustest.Eventually(t, "both wait", func() bool { return len(f.starter.Accepted()) == 2 })
	if err := f.server.AllowClient([]string{flowSubject, "orders.*.paid"}); err != nil {
		t.Fatal(err)
	}
	close(release)
	for range 2 {
		if _, err := answers.NextMsg(bustest.Patience); err != nil {
			t.Fatal(err)
		}
	}
}

// A message that fits several subjects of flows comes once.
func TestOverlappingSubjectsDeliverOnce(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := bustest.StartServer(t, natsd.Config{Dir: dir, Listen: "127.0.0.1:0", ClientSubjects: []string{"a.*.c", "a.b.*", "a.b.c", "a.>", "x.*", "x.y"}})
	app := bustest.ConnectApp(t, s)
	heard := make(chan string, 10)
	if _, err := app.Subscribe(">", func(m *nats.Msg) {
		if !strings.HasPrefix(m.Subject, "_") && !strings.HasPrefix(m.Subject, "$") {
			heard <- m.Subject
		}
	}); err != nil {
		t.Fatal(err)
	}
	if err := app.Flush(); err != nil {
		t.Fatal(err)
	}
	bustest.PublishCore(t, bustest.Dial(t, bustest.ReadCredentials(t, dir, natsd.ClientContext)), "a.b.c", "x.y", "a.z")
	for _, want := range []string{"a.b.c", "x.y", "a.z"} {
		if got := <-heard; got != want {
			t.Errorf("heard %s, want %s", got, want)
		}
	}
}

// One who can send to an inbox of the engine starts no runs by it.
func TestForgedMessagesOfAConsumer(t *testing.T) {
	t.Parallel()
	nc := bustest.Connect(t, bustest.StartServer(t, natsd.Config{}))
	pulls, err := nc.SubscribeSync("$JS.API.CONSUMER.MSG.NEXT." + bus.StreamTriggers + ".>")
	if err != nil {
		t.Fatal(err)
	}
	s := &bustest.Starter{}
	bustest.RunIntake(t, nc, s, nil, intake.Config{})
	pull, err := pulls.NextMsg(bustest.Patience)
	if err != nil {
		t.Fatal(err)
	}
	forged := &nats.Msg{Subject: pull.Reply, Reply: "$JS.ACK.OTHER.consumer.1.1.1.1700000000000000000.0", Data: []byte(`"forged"`)}
	if err := nc.PublishMsg(forged); err != nil {
		t.Fatal(err)
	}
	bustest.Publish(t, nc, "fh.v1.trigger.a", `"true"`)
	if got := s.Payloads(t, 1); got[0] != `"true"` {
		t.Errorf("the first run is of %s", got[0])
	}
}

var writeRights = flag.Bool("rights", false, "write the table of rights into docs/nats.md")

// The table in docs/nats.md is what the code says.
func TestRightsOfTheDocs(t *testing.T) {
	t.Parallel()
	const page, begin, end = "../../docs/nats.md", "-rights` -->\n", "<!-- end of rights -->"
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, ok := strings.Cut(string(text), begin)
	table, after, ended := strings.Cut(rest, end)
	if !ok || !ended {
		t.Fatalf("%s has no place for the table", page)
	}
	want := "\n" + natsd.Rights() + "\n"
	if *writeRights {
		if err := os.WriteFile(page, []byte(before+begin+want+end+after), 0o600); err != nil {
			t.Fatal(err)
		}
		return
	}
	if diff := cmp.Diff(want, table); diff != "" {
		t.Errorf("%s (-code +page), written by the flag -rights:\n%s", page, diff)
	}
}
