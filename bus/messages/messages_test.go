package messages_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/flowhost/flowhost/bus/internal/bustest"
	"github.com/flowhost/flowhost/bus/internal/ops"
	"github.com/flowhost/flowhost/bus/messages"
	"github.com/flowhost/flowhost/bus/natsd"
	"github.com/flowhost/flowhost/run"
	"github.com/flowhost/flowhost/run/access"
)

var (
	caller  = access.Caller{Flow: "orders", Run: "01HZXW0000000000000000000A", Task: "price", Key: "7", Attempt: 1, Hops: 3, Traceparent: "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"}
	granted = access.Policy{Grants: access.Grants{Publish: []string{"orders.priced.*", "audit.>"}, Request: []string{"pricing.v2.*"}}}
)

func connect(t testing.TB, s *natsd.Server) *nats.Conn {
	t.Helper()
	nc, err := s.ConnectApp()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(nc.Close)
	return nc
}

func open(t testing.TB, cfg messages.Config) *messages.Messages {
	t.Helper()
	m, err := messages.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// stream makes a stream of the operator.
func stream(t testing.TB, nc *nats.Conn, cfg jetstream.StreamConfig) {
	t.Helper()
	if _, err := bustest.JetStream(t, nc).CreateStream(t.Context(), cfg); err != nil {
		t.Fatal(err)
	}
}

func operation(kind string, head any, body []byte) *access.Operation {
	text, ok := head.(string)
	if !ok {
		encoded, err := json.Marshal(head)
		if err != nil {
			panic(err)
		}
		text = string(encoded)
	}
	return &access.Operation{Kind: kind, Head: json.RawMessage(text), Body: body}
}

type published struct {
	Stored    bool
	Stream    string
	Sequence  uint64
	Duplicate bool
}

func publish(t testing.TB, s *messages.Session, head any, body string) published {
	t.Helper()
	a := s.Do(t.Context(), operation(access.KindPublish, head, []byte(body)))
	if a.Fault != nil {
		t.Fatalf("publish %v: %+v", head, a.Fault)
	}
	var p published
	if err := json.Unmarshal(a.Head, &p); err != nil {
		t.Fatal(err)
	}
	return p
}

func subject(name string) map[string]any { return map[string]any{"subject": name} }

func TestPublishToAStream(t *testing.T) {
	t.Parallel()
	nc := connect(t, bustest.StartServer(t, natsd.Config{}))
	stream(t, nc, jetstream.StreamConfig{Name: "AUDIT", Subjects: []string{"audit.>"}})
	m := open(t, messages.Config{Conn: nc})
	first := m.Session(caller, granted.Always)
	head := map[string]any{"subject": "audit.a", "headers": map[string][]string{"Content-Type": {"text/plain"}, "X": {"1", "2"}}}
	if got, want := publish(t, first, head, "one"), (published{true, "AUDIT", 1, false}); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
	if got, want := publish(t, first, head, "one"), (published{true, "AUDIT", 2, false}); got != want {
		t.Errorf("the same message a second time: got %+v, want %+v", got, want)
	}
	retry := caller
	retry.Attempt = 2
	second := m.Session(retry, granted.Always)
	for _, sequence := range []uint64{1, 2} {
		if got, want := publish(t, second, head, "one"), (published{true, "AUDIT", sequence, true}); got != want {
			t.Errorf("by the next attempt: got %+v, want %+v", got, want)
		}
	}
	if got := publish(t, second, head, "two"); got.Duplicate {
		t.Errorf("another body: got %+v, want a new message", got)
	}
	stored := bustest.Messages(t, nc, "AUDIT")
	h := stored[0].Header
	if h.Get(run.HeaderHops) != "4" || h.Get("traceparent") != caller.Traceparent || h.Get("Content-Type") != "text/plain" || len(h.Values("X")) != 2 {
		t.Errorf("headers %v, want the guest's, one hop more and the trace", h)
	}
	if len(stored) != 3 || string(stored[0].Data) != "one" {
		t.Errorf("%d messages, want 3", len(stored))
	}
}

// TestIDs has messages of other runs, tasks, keys, subjects and bodies get other ids.
func TestIDs(t *testing.T) {
	t.Parallel()
	nc := connect(t, bustest.StartServer(t, natsd.Config{}))
	stream(t, nc, jetstream.StreamConfig{Name: "AUDIT", Subjects: []string{"audit.>"}})
	m := open(t, messages.Config{Conn: nc})
	callers := []access.Caller{caller, caller, caller, caller, caller}
	callers[1].Run = "01HZXW0000000000000000000B"
	callers[2].Task = "price7"
	callers[2].Key = ""
	callers[3].Key = "8"
	callers[4].Flow = "other" // the run says which flow it is of
	for i, c := range callers {
		for _, name := range []string{"audit.a", "audit.b"} {
			for _, body := range []string{"", "x"} {
				if got := publish(t, m.Session(c, granted.Always), subject(name), body); got.Duplicate != (i == 4) {
					t.Errorf("caller %d, %s, body %q: %+v", i, name, body, got)
				}
			}
		}
	}
}

func TestPublishWithoutAStream(t *testing.T) {
	t.Parallel()
	nc := connect(t, bustest.StartServer(t, natsd.Config{}))
	m := open(t, messages.Config{Conn: nc})
	sub, err := nc.SubscribeSync("audit.>")
	if err != nil {
		t.Fatal(err)
	}
	if got := publish(t, m.Session(caller, granted.Always), subject("audit.a"), "one"); got != (published{}) {
		t.Errorf("got %+v, want not stored", got)
	}
	msg, err := sub.NextMsg(bustest.Patience)
	if err != nil {
		t.Fatal(err)
	}
	if msg.Reply != "" || string(msg.Data) != "one" || msg.Header.Get(jetstream.MsgIDHeader) == "" {
		t.Errorf("received %q with reply %q and %v", msg.Data, msg.Reply, msg.Header)
	}
	if got := publish(t, m.Session(caller, granted.Always), subject("orders.priced.a"), "nobody listens"); got.Stored {
		t.Errorf("got %+v, want not stored", got)
	}
}

// TestStreamWithoutAcknowledgement must not wait for one.
func TestStreamWithoutAcknowledgement(t *testing.T) {
	t.Parallel()
	nc := connect(t, bustest.StartServer(t, natsd.Config{}))
	stream(t, nc, jetstream.StreamConfig{Name: "AUDIT", Subjects: []string{"audit.>"}, NoAck: true})
	s := open(t, messages.Config{Conn: nc}).Session(caller, granted.Always)
	if got := publish(t, s, subject("audit.a"), "one"); got.Stored {
		t.Errorf("got %+v, want not stored", got)
	}
}

// TestRemovedStream removes a stream that is remembered.
func TestRemovedStream(t *testing.T) {
	t.Parallel()
	nc := connect(t, bustest.StartServer(t, natsd.Config{}))
	stream(t, nc, jetstream.StreamConfig{Name: "AUDIT", Subjects: []string{"audit.>"}})
	s := open(t, messages.Config{Conn: nc}).Session(caller, granted.Always)
	if got := publish(t, s, subject("audit.a"), "one"); !got.Stored {
		t.Errorf("got %+v, want stored", got)
	}
	if err := bustest.JetStream(t, nc).DeleteStream(t.Context(), "AUDIT"); err != nil {
		t.Fatal(err)
	}
	if got := publish(t, s, subject("audit.a"), "two"); got.Stored {
		t.Errorf("got %+v, want not stored", got)
	}
}

func TestFullStream(t *testing.T) {
	t.Parallel()
	nc := connect(t, bustest.StartServer(t, natsd.Config{}))
	stream(t, nc, jetstream.StreamConfig{Name: "AUDIT", Subjects: []string{"audit.>"}, MaxMsgs: 1, Discard: jetstream.DiscardNew, MaxMsgSize: 1000})
	m := open(t, messages.Config{Conn: nc})
	s := m.Session(caller, granted.Always)
	if f := s.Do(t.Context(), operation(access.KindPublish, subject("audit.a"), make([]byte, 2000))).Fault; f == nil || f.Code != access.CodeTooLarge {
		t.Errorf("%+v, want too_large", f)
	}
	publish(t, s, subject("audit.a"), "one")
	if f := s.Do(t.Context(), operation(access.KindPublish, subject("audit.a"), nil)).Fault; f == nil || f.Code != access.CodeTooLarge {
		t.Errorf("%+v, want too_large", f)
	}
}

// TestPublishAgain has an attempt publish again what has failed: it is the same message, and
// not a second one.
func TestPublishAgain(t *testing.T) {
	t.Parallel()
	nc := connect(t, bustest.StartServer(t, natsd.Config{}))
	stream(t, nc, jetstream.StreamConfig{Name: "AUDIT", Subjects: []string{"audit.>"}, MaxMsgs: 1, Discard: jetstream.DiscardNew})
	m := open(t, messages.Config{Conn: nc})
	s := m.Session(caller, granted.Always)
	publish(t, s, subject("audit.a"), "in the way")
	for range 2 {
		if f := s.Do(t.Context(), operation(access.KindPublish, subject("audit.a"), []byte("one"))).Fault; f == nil || f.Code != access.CodeTooLarge {
			t.Fatalf("%+v, want too_large", f)
		}
	}
	audit, err := bustest.JetStream(t, nc).Stream(t.Context(), "AUDIT")
	if err != nil {
		t.Fatal(err)
	}
	if err := audit.Purge(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := publish(t, s, subject("audit.a"), "one"); !got.Stored || got.Duplicate {
		t.Errorf("got %+v, want stored", got)
	}
	if got := publish(t, m.Session(caller, granted.Always), subject("audit.a"), "one"); !got.Duplicate {
		t.Errorf("by the next attempt: got %+v, want a duplicate", got)
	}
}

// TestCrashes ends attempts in the middle of a publish and has the next attempt publish the
// same again, in another order: the stream has each message once.
func TestCrashes(t *testing.T) {
	t.Parallel()
	nc := connect(t, bustest.StartServer(t, natsd.Config{}))
	stream(t, nc, jetstream.StreamConfig{Name: "AUDIT", Subjects: []string{"audit.>"}})
	m := open(t, messages.Config{Conn: nc})
	const rounds, each = 100, 12
	random := rand.New(rand.NewPCG(1, 2))
	for round := range rounds {
		c := caller
		c.Run = fmt.Sprintf("run%d", round)
		for c.Attempt = 1; !attempt(t, m.Session(c, granted.Always), round, random.Perm(each), random.IntN(each+2)); c.Attempt++ {
		}
	}
	stored := map[string]int{}
	for _, msg := range bustest.Messages(t, nc, "AUDIT") {
		stored[string(msg.Data)]++
	}
	for round := range rounds {
		for i := range each / 2 {
			if n := stored[body(round, i)]; n != 2 {
				t.Errorf("%s is stored %d times, want 2: each attempt publishes it twice", body(round, i), n)
			}
		}
	}
	if len(stored) != rounds*each/2 {
		t.Errorf("%d different messages, want %d", len(stored), rounds*each/2)
	}
}

func body(round, i int) string { return fmt.Sprintf("round %d message %d", round, i) }

// attempt publishes messages, each twice, and crashes with the one of the given number. It
// reports whether all are published.
func attempt(t *testing.T, s *messages.Session, round int, order []int, crash int) bool {
	t.Helper()
	for n, i := range order {
		ctx, cancel := context.WithCancel(t.Context())
		var killer sync.WaitGroup
		if n == crash {
			killer.Go(cancel)
		}
		a := s.Do(ctx, operation(access.KindPublish, subject("audit.a"), []byte(body(round, i/2))))
		killer.Wait()
		cancel()
		switch {
		case n == crash:
			return false
		case a.Fault != nil:
			t.Fatalf("%+v", a.Fault)
		}
	}
	return true
}

// TestRestartedServer has the server end under attempts that publish, and come back: the
// attempt that gets through all messages leaves each of them once.
func TestRestartedServer(t *testing.T) {
	t.Parallel()
	external := bustest.NewExternal(t)
	external.Start()
	nc := external.Connect(&bustest.LogLines{}, external.Address())
	stream(t, nc, jetstream.StreamConfig{Name: "AUDIT", Subjects: []string{"audit.>"}})
	m := open(t, messages.Config{Conn: nc, Timeout: 2 * time.Second})
	const crashes, total = 3, 60
	pass := func(from int) *access.Fault {
		s := m.Session(caller, granted.Always)
		for i := from; i < total; i++ {
			if f := s.Do(t.Context(), operation(access.KindPublish, subject("audit.a"), []byte(body(0, i)))).Fault; f != nil {
				return f
			}
		}
		return nil
	}
	for n := range crashes {
		faults := make(chan *access.Fault, 1)
		go func() {
			for {
				if f := pass(total - 20*(n+1)); f != nil { // other messages are new each time
					faults <- f
					return
				}
			}
		}()
		external.Stop()
		if f := <-faults; f.Code != access.CodeUnreachable || !f.Retryable {
			t.Errorf("%+v, want unreachable and retryable", f)
		}
		external.Start()
		bustest.Eventually(t, "connected again", nc.IsConnected)
	}
	bustest.Eventually(t, "all messages are published", func() bool { return pass(0) == nil })
	stored := bustest.Messages(t, nc, "AUDIT")
	seen := map[string]bool{}
	for _, msg := range stored {
		seen[string(msg.Data)] = true
	}
	if len(stored) != total || len(seen) != total {
		t.Errorf("%d messages, %d different ones, want %d", len(stored), len(seen), total)
	}
}

func TestRequest(t *testing.T) {
	t.Parallel()
	nc := connect(t, bustest.StartServer(t, natsd.Config{}))
	s := open(t, messages.Config{Conn: nc}).Session(caller, granted.Always)
	sub, err := nc.Subscribe("pricing.v2.*", func(m *nats.Msg) {
		reply := &nats.Msg{Data: append([]byte("price of "), m.Data...), Header: nats.Header{"Hops": m.Header[run.HeaderHops]}}
		if bytes.Equal(m.Data, []byte("large")) {
			reply.Data = make([]byte, ops.MaxBody+1)
		}
		if bytes.Equal(m.Data, []byte("headers")) {
			reply.Header.Set("X", strings.Repeat("x", messages.MaxHeaderBytes))
		}
		if !bytes.Equal(m.Data, []byte("silence")) {
			_ = m.RespondMsg(reply)
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	a := s.Do(t.Context(), operation(access.KindRequest, subject("pricing.v2.get"), []byte("tea")))
	if a.Fault != nil || string(a.Body) != "price of tea" || string(a.Head) != `{"headers":{"Hops":["4"]}}` {
		t.Errorf("%s %s %+v", a.Head, a.Body, a.Fault)
	}
	for _, large := range []string{"large", "headers"} {
		a := s.Do(t.Context(), operation(access.KindRequest, subject("pricing.v2.get"), []byte(large)))
		if a.Fault == nil || a.Fault.Code != access.CodeTooLarge {
			t.Errorf("an answer with large %s: %+v, want too_large", large, a.Fault)
		}
	}
	a = s.Do(t.Context(), operation(access.KindRequest, `{"subject":"pricing.v2.get","timeout_ms":20}`, []byte("silence")))
	if a.Fault == nil || a.Fault.Code != access.CodeTimeout || !a.Fault.Retryable {
		t.Errorf("%+v, want timeout, retryable", a.Fault)
	}
	if err := sub.Unsubscribe(); err != nil {
		t.Fatal(err)
	}
	a = s.Do(t.Context(), operation(access.KindRequest, subject("pricing.v2.get"), nil))
	if a.Fault == nil || a.Fault.Code != access.CodeUnreachable || !a.Fault.Retryable {
		t.Errorf("%+v, want unreachable, retryable", a.Fault)
	}
}

// TestServerGone has a request wait for its answer when the server ends.
func TestServerGone(t *testing.T) {
	t.Parallel()
	external := bustest.NewExternal(t)
	external.Start()
	nc := external.Connect(&bustest.LogLines{}, external.Address())
	asked := make(chan struct{})
	if _, err := nc.Subscribe("pricing.v2.*", func(*nats.Msg) { close(asked) }); err != nil {
		t.Fatal(err)
	}
	if err := nc.Flush(); err != nil {
		t.Fatal(err)
	}
	s := open(t, messages.Config{Conn: nc}).Session(caller, granted.Always)
	answer := make(chan access.Answer, 1)
	go func() {
		answer <- s.Do(t.Context(), operation(access.KindRequest, `{"subject":"pricing.v2.a","timeout_ms":500}`, nil))
	}()
	<-asked
	external.Stop()
	if f := (<-answer).Fault; f == nil || f.Code != access.CodeTimeout || !f.Retryable {
		t.Errorf("%+v, want timeout, retryable", f)
	}
	for _, kind := range []string{access.KindPublish, access.KindRequest} {
		name := map[string]string{access.KindPublish: "audit.a", access.KindRequest: "pricing.v2.a"}[kind]
		bustest.Eventually(t, "the connection is known to be broken", func() bool { return !nc.IsConnected() })
		if f := s.Do(t.Context(), operation(kind, subject(name), nil)).Fault; f == nil || f.Code != access.CodeUnreachable || !f.Retryable {
			t.Errorf("%s: %+v, want unreachable, retryable", kind, f)
		}
	}
}

// everything is a grant that includes all that a pattern can.
var everything = access.Policy{Grants: access.Grants{Publish: []string{">"}, Request: []string{">"}}, Allow: &access.Allow{Pattern: "*", Publish: []string{">"}, Request: []string{">"}}}

// refusedSubjects are those that no grant opens.
var refusedSubjects = []string{
	"", ">", "*", "orders.>", "orders.*", "orders.priced*", "orders.>.x", "a..b", ".a", "a.", ".",
	"$JS.API.STREAM.DELETE.AUDIT", "$JS.API.>", "$SYS.REQ.SERVER.PING", "$SYS.>", "$SRV.PING", "$KV.FH_KV_counters.k", "$O.FH_BLOBS.C.x", "$JS.ACK.AUDIT.c.1.1.1.1.0",
	"_INBOX.>", "_INBOX.a.b", "_INBOX_engine.a", "_R_.abc", "_",
	"fh.v1.>", "fh.v1.trigger.orders", "fh.v1.api.run.orders", "fh.v1.journal.0", "fh", "fh.x",
	"a b", "a\tb", "a\r\nPUB x 1", "a\x00b", "a\u00a0b", "a\u2028b", "a\u200bb", "a\x7fb", "\xff", strings.Repeat("a", 257), "a." + strings.Repeat("b.", 200) + "c",
}

// refusedHeaders are those that guests do not set.
var refusedHeaders = []map[string][]string{
	{"Nats-Msg-Id": {"x"}}, {"nats-msg-id": {"x"}}, {"NATS-MSG-ID": {"x"}}, {"Nats-Expected-Stream": {"AUDIT"}}, {"Nats-Expected-Last-Sequence": {"0"}},
	{"Nats-TTL": {"1s"}}, {"Nats-Rollup": {"all"}}, {"Nats-Schedule": {"@every 1s"}}, {"Nats-Schedule-Target": {"fh.v1.trigger.orders"}}, {"Nats-Batch-Id": {"x"}}, {"Nats-Incr": {"1"}},
	{"Fh-Hops": {"0"}}, {"fh-hops": {"0"}}, {"Fh-Key": {"k"}}, {"Fh-Wait": {"1s"}},
	{"Status": {"503"}}, {"status": {"100"}}, {"Description": {"x"}}, {"traceparent": {"x"}}, {"Traceparent": {"x"}}, {"tracestate": {"x"}}, {"Reply-To": {"x"}},
	{"": {"x"}}, {"a b": {"x"}}, {"a:b": {"x"}}, {"a\r\nNats-Rollup: all": {"x"}}, {"ä": {"x"}}, {strings.Repeat("a", 300): {"x"}},
	{"X": {"a\r\nNats-Rollup: all"}}, {"X": {"a\nb"}}, {"X": {"a\rb"}}, {"X": {"a\x00b"}},
}

// TestCorpus has each case refused before anything is sent.
func TestCorpus(t *testing.T) {
	t.Parallel()
	server := bustest.StartServer(t, natsd.Config{})
	nc := connect(t, server)
	s := open(t, messages.Config{Conn: nc}).Session(caller, everything.Always)
	narrow := open(t, messages.Config{Conn: nc}).Session(caller, granted.Always)
	seen := bustest.ListenAll(t, server)
	refused := func(s *messages.Session, code, kind string, head any, body []byte) {
		t.Helper()
		if f := s.Do(t.Context(), operation(kind, head, body)).Fault; f == nil || f.Code != code {
			t.Errorf("%s %.200v: %+v, want %s", kind, head, f, code)
		}
		if got := seen(nc); len(got) > 0 {
			t.Errorf("%s %.200v sent %q", kind, head, got)
		}
	}
	many := map[string][]string{}
	for i := range messages.MaxHeaders + 1 {
		many[fmt.Sprint("X", i)] = []string{"x"}
	}
	for _, kind := range []string{access.KindPublish, access.KindRequest} {
		for _, name := range refusedSubjects {
			refused(s, access.CodeInvalid, kind, subject(name), nil)
		}
		for _, headers := range refusedHeaders {
			refused(s, access.CodeInvalid, kind, map[string]any{"subject": "a", "headers": headers}, nil)
		}
		for _, headers := range []map[string][]string{many, {"X": make([]string, messages.MaxHeaders+1)}, {"X": {strings.Repeat("x", messages.MaxHeaderBytes)}}} {
			refused(s, access.CodeTooLarge, kind, map[string]any{"subject": "a", "headers": headers}, nil)
		}
		refused(s, access.CodeTooLarge, kind, map[string]any{"subject": "a", "headers": map[string][]string{"X": make([]string, 32769)}}, nil)
		refused(s, access.CodeTooLarge, kind, map[string]any{"subject": "a", "headers": map[string][]string{"X": {strings.Repeat("x", 1<<20)}}}, nil)
		for _, field := range []string{"reply", "reply_to", "Reply", "inbox", "id", "ttl_ms", "stream"} {
			refused(s, access.CodeInvalid, kind, map[string]any{"subject": "a", field: "_INBOX.mine"}, nil)
		}
		refused(s, access.CodeInvalid, kind, `{"subject":"a"`, nil)
		refused(s, access.CodeInvalid, kind, `{"subject":["a"]}`, nil)
		refused(s, access.CodeTooLarge, kind, subject("a"), make([]byte, ops.MaxBody+1))
		for _, name := range []string{"orders", "orders.priced", "orders.priced.a.b", "orders.PRICED.a", "audit", "pricing.v2", "pricing.v3.a", "else"} {
			refused(narrow, access.CodeDenied, kind, subject(name), nil)
		}
	}
	refused(narrow, access.CodeDenied, access.KindPublish, subject("pricing.v2.a"), nil)
	refused(narrow, access.CodeDenied, access.KindRequest, subject("audit.a"), nil)
	refused(s, access.CodeInvalid, access.KindRequest, `{"subject":"a","timeout_ms":-1}`, nil)
	refused(s, access.CodeInvalid, access.KindRequest, `{"subject":"a","timeout_ms":9223372036854775807}`, nil)
	refused(s, access.CodeInvalid, "subscribe", subject("a"), nil)
	publish(t, s, subject("a"), "")
	if got := seen(nc); len(got) == 0 {
		t.Error("a publish is not seen: the test would prove nothing")
	}
}

// TestLineToAdd has a subject that is a template in a flow file.
func TestLineToAdd(t *testing.T) {
	t.Parallel()
	s := open(t, messages.Config{Conn: connect(t, bustest.StartServer(t, natsd.Config{}))}).Session(caller, access.Policy{}.Always)
	f := s.Do(t.Context(), operation(access.KindPublish, subject(`a.${file("x")}.%{b}`), nil)).Fault
	if f == nil || f.Add != `publish = ["a.$${file(\"x\")}.%%{b}"]` {
		t.Errorf("%+v", f)
	}
}

func TestPolicy(t *testing.T) {
	t.Parallel()
	nc := connect(t, bustest.StartServer(t, natsd.Config{}))
	m := open(t, messages.Config{Conn: nc})
	allow := func(patterns ...string) *access.Allow {
		return &access.Allow{Pattern: "orders*", Publish: patterns, From: "flowhost.hcl:12"}
	}
	tests := []struct {
		name  string
		grant []string
		allow *access.Allow
		rule  string // "" for a message that is sent
	}{
		{"granted", []string{"x", "a.*"}, nil, ""},
		{"nothing granted", nil, nil, ops.RuleGrant},
		{"an empty list", []string{}, nil, ops.RuleGrant},
		{"an empty pattern", []string{""}, nil, ops.RuleGrant},
		{"patterns that are not well-formed", []string{"a.", ".b", "a.>.b", "a..b", "a.b.", "a.b*", "a.b>", "a. b", "**"}, nil, ops.RuleGrant},
		{"allowed", []string{"a.b"}, allow("a.>"), ""},
		{"an allow block without publish", []string{"a.b"}, allow(), ops.RuleAllow},
		{"allowed elsewhere", []string{"a.b"}, allow("b.>"), ops.RuleAllow},
		{"allowed and not granted", nil, allow(">"), ops.RuleGrant},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			s := m.Session(caller, access.Policy{Grants: access.Grants{Publish: test.grant}, Allow: test.allow}.Always)
			f := s.Do(t.Context(), operation(access.KindPublish, subject("a.b"), nil)).Fault
			switch {
			case test.rule == "" && f != nil:
				t.Errorf("%+v, want the message sent", f)
			case test.rule != "" && (f == nil || f.Code != access.CodeDenied || f.Rule != test.rule || f.Add != `publish = ["a.b"]`):
				t.Errorf("%+v, want rule %q", f, test.rule)
			}
		})
	}
}

// TestManyHeaders fills the bounds.
func TestManyHeaders(t *testing.T) {
	t.Parallel()
	nc := connect(t, bustest.StartServer(t, natsd.Config{}))
	s := open(t, messages.Config{Conn: nc}).Session(caller, granted.Always)
	sub, err := nc.SubscribeSync("audit.a")
	if err != nil {
		t.Fatal(err)
	}
	headers := map[string][]string{}
	for i := range messages.MaxHeaders {
		headers[fmt.Sprintf("X-%d", i)] = []string{strings.Repeat("v", 100)}
	}
	publish(t, s, map[string]any{"subject": "audit.a", "headers": headers}, "")
	msg, err := sub.NextMsg(bustest.Patience)
	if err != nil {
		t.Fatal(err)
	}
	got := maps.Clone(msg.Header)
	maps.DeleteFunc(got, func(name string, _ []string) bool { return !strings.HasPrefix(name, "X-") })
	if len(got) != messages.MaxHeaders {
		t.Errorf("%d headers arrive, want %d", len(got), messages.MaxHeaders)
	}
}
