package intake_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/flowhost/flowhost/bus"
	"github.com/flowhost/flowhost/bus/intake"
	"github.com/flowhost/flowhost/bus/internal/bustest"
	"github.com/flowhost/flowhost/bus/internal/jskit"
	"github.com/flowhost/flowhost/bus/natsd"
	"github.com/flowhost/flowhost/run"
)

func numbers(from, to int) []string {
	var all []string
	for i := from; i <= to; i++ {
		all = append(all, fmt.Sprint(i))
	}
	return all
}

func TestTriggersOfStream(t *testing.T) {
	t.Parallel()
	nc := bustest.Connect(t, bustest.StartServer(t, natsd.Config{}))
	s := &bustest.Starter{}
	bustest.Publish(t, nc, "fh.v1.trigger.orders", numbers(1, 3)...)
	stop := bustest.RunIntake(t, nc, s, nil, intake.Config{})
	bustest.Publish(t, nc, "fh.v1.trigger.orders", numbers(4, 5)...)
	if got := s.Payloads(t, 5); !slices.Equal(got, numbers(1, 5)) {
		t.Errorf("payloads = %q", got)
	}
	stored := bustest.Messages(t, nc, bus.StreamTriggers)[3]
	want := run.Request{
		Flow: "orders", Position: run.Position{Source: bus.SourceTriggers, Seq: 4, At: stored.Time.UTC()},
		Trigger: run.Trigger{Kind: run.TriggerMessage, Time: stored.Time.UTC(), Subject: "fh.v1.trigger.orders", Payload: json.RawMessage("4")},
	}
	if diff := cmp.Diff(want, s.Accepted()[3]); diff != "" {
		t.Errorf("request (-want +got):\n%s", diff)
	}
	// Another start goes on from the engine's watermark.
	stop()
	bustest.Publish(t, nc, "fh.v1.trigger.orders", numbers(6, 7)...)
	bustest.RunIntake(t, nc, s, nil, intake.Config{})
	if got := s.Payloads(t, 7); !slices.Equal(got, numbers(1, 7)) {
		t.Errorf("payloads = %q", got)
	}
	if got := s.Attempts(); got != 7 {
		t.Errorf("%d messages were submitted, want 7", got)
	}
}

// An engine that takes nothing for a while loses nothing.
func TestTriggersAreRetried(t *testing.T) {
	t.Parallel()
	nc := bustest.Connect(t, bustest.StartServer(t, natsd.Config{}))
	var down atomic.Bool
	down.Store(true)
	s := &bustest.Starter{OnSubmit: func(run.Request) error {
		if down.Load() {
			return errBusy
		}
		return nil
	}}
	bustest.Stream(t, nc, "ORDERS", "orders.*")
	bustest.Publish(t, nc, "fh.v1.trigger.orders", "1", "2")
	bustest.Publish(t, nc, "orders.new", "1", "2")
	var log bustest.LogLines
	bustest.RunIntake(t, nc, s, []intake.Subscription{{Flow: "orders", Trigger: "new", Stream: "ORDERS"}}, intake.Config{Log: log.Logger()})
	bustest.Eventually(t, "both are tried again", func() bool { return s.Attempts() > 6 })
	if n := len(s.Accepted()); n != 0 {
		t.Fatalf("%d requests were accepted", n)
	}
	down.Store(false)
	got := s.Payloads(t, 4)
	slices.Sort(got)
	if !slices.Equal(got, []string{"1", "1", "2", "2"}) {
		t.Errorf("payloads = %q", got)
	}
	if n := log.Count("waiting to start a run"); n != 2 {
		t.Errorf("the log has %d lines about the wait, want one for each stream", n)
	}
}

// A stream that was made anew counts from 1: what is published next must not be
// taken for decided. Journals of earlier versions do not know when the messages
// were stored.
func TestTriggersOfStreamMadeAnew(t *testing.T) {
	t.Parallel()
	nc := bustest.Connect(t, bustest.StartServer(t, natsd.Config{}))
	s := &bustest.Starter{Watermarks: map[string]run.Position{bus.SourceTriggers: {Seq: 40}}}
	var log bustest.LogLines
	bustest.RunIntake(t, nc, s, nil, intake.Config{Log: log.Logger()})
	bustest.Eventually(t, "the stream is numbered", func() bool { return log.Count("numbers continue") == 1 })
	bustest.Eventually(t, "the numbers are above the watermark", func() bool {
		st, err := bustest.JetStream(t, nc).Stream(t.Context(), bus.StreamTriggers)
		return err == nil && st.CachedInfo().State.LastSeq == 40
	})
	bustest.Publish(t, nc, "fh.v1.trigger.orders", `"new"`)
	s.Payloads(t, 1)
	if got := s.Accepted()[0].Position.Seq; got != 41 {
		t.Errorf("position = %d, want 41", got)
	}
}

func TestForeignStream(t *testing.T) {
	t.Parallel()
	nc := bustest.Connect(t, bustest.StartServer(t, natsd.Config{}))
	st := bustest.Stream(t, nc, "ORDERS", "orders.*")
	bustest.Publish(t, nc, "orders.new", numbers(1, 2)...)
	bustest.Publish(t, nc, "orders.other", "0")
	s := &bustest.Starter{}
	trigger := intake.Subscription{Flow: "billing/charge", Trigger: "new", Subject: "orders.new", Stream: "ORDERS"}
	stop := bustest.RunIntake(t, nc, s, []intake.Subscription{trigger}, intake.Config{})
	bustest.Publish(t, nc, "orders.new", numbers(3, 9)...)
	if got := s.Payloads(t, 9); !slices.Equal(got, numbers(1, 9)) {
		t.Errorf("payloads = %q", got)
	}
	got := s.Accepted()[2]
	if got.Flow != "billing/charge" || got.Trigger.Name != "new" || got.Trigger.Kind != run.TriggerMessage || got.Trigger.Subject != "orders.new" ||
		got.Position != (run.Position{Source: "stream/ORDERS/billing/charge/new", Seq: 4, At: got.Trigger.Time}) {
		t.Errorf("request = %+v", got)
	}
	acknowledged := func() bool {
		c, err := st.Consumer(t.Context(), "flowhost_billing=charge_new")
		return err == nil && c.CachedInfo().NumAckPending == 0 && c.CachedInfo().AckFloor.Stream == 10
	}
	bustest.Eventually(t, "all is acknowledged", acknowledged)
	stop()

	// The consumer is gone, the engine's watermark is not.
	if err := st.DeleteConsumer(t.Context(), "flowhost_billing=charge_new"); err != nil {
		t.Fatal(err)
	}
	bustest.Publish(t, nc, "orders.new", "10")
	bustest.RunIntake(t, nc, s, []intake.Subscription{trigger}, intake.Config{})
	if got := s.Payloads(t, 10); !slices.Equal(got, numbers(1, 10)) {
		t.Errorf("payloads = %q", got)
	}
	if n := s.Attempts(); n != 10 {
		t.Errorf("%d messages were submitted, want 10", n)
	}
}

// A stream or a consumer that is not as it must be is waited for; a consumer that
// others made is bounded to one message under way, so that the order holds.
func TestForeignStreamComesLater(t *testing.T) {
	t.Parallel()
	nc := bustest.Connect(t, bustest.StartServer(t, natsd.Config{}))
	s := &bustest.Starter{}
	var log bustest.LogLines
	trigger := intake.Subscription{Flow: "orders", Trigger: "new", Stream: "ORDERS", Durable: "mine"}
	bustest.RunIntake(t, nc, s, []intake.Subscription{trigger}, intake.Config{Log: log.Logger()})
	bustest.Eventually(t, "the wait is logged", func() bool { return log.Count("waiting to read stream ORDERS") == 1 })
	st := bustest.Stream(t, nc, "ORDERS", "orders.*")
	if _, err := st.CreateOrUpdateConsumer(t.Context(), jetstream.ConsumerConfig{Durable: "mine", AckPolicy: jetstream.AckExplicitPolicy, MaxAckPending: 100}); err != nil {
		t.Fatal(err)
	}
	bustest.Publish(t, nc, "orders.new", "1", "2")
	if got := s.Payloads(t, 2); !slices.Equal(got, []string{"1", "2"}) {
		t.Errorf("payloads = %q", got)
	}
	bustest.Eventually(t, "the consumer is bounded", func() bool {
		c, err := st.Consumer(t.Context(), "mine")
		return err == nil && c.CachedInfo().Config.MaxAckPending == 1
	})
}

func TestForeignConsumerWithoutAcks(t *testing.T) {
	t.Parallel()
	nc := bustest.Connect(t, bustest.StartServer(t, natsd.Config{}))
	st := bustest.Stream(t, nc, "ORDERS", "orders.*")
	if _, err := st.CreateConsumer(t.Context(), jetstream.ConsumerConfig{Durable: "mine", AckPolicy: jetstream.AckAllPolicy}); err != nil {
		t.Fatal(err)
	}
	var log bustest.LogLines
	bustest.RunIntake(t, nc, &bustest.Starter{}, []intake.Subscription{{Flow: "orders", Trigger: "new", Stream: "ORDERS", Durable: "mine"}}, intake.Config{Log: log.Logger()})
	bustest.Eventually(t, "the log says what to do", func() bool { return log.Count("name another durable") == 1 })
}

func TestDeadLetters(t *testing.T) {
	t.Parallel()
	nc := bustest.Connect(t, bustest.StartServer(t, natsd.Config{}))
	st := bustest.Stream(t, nc, "ORDERS", "orders.*")
	s := &bustest.Starter{}
	header := nats.Header{"X-Source": {"shop"}, "Nats-Msg-Id": {"1"}}
	js := bustest.JetStream(t, nc)
	for _, subject := range []string{"fh.v1.trigger.unknown", "orders.new"} {
		if _, err := js.PublishMsg(t.Context(), &nats.Msg{Subject: subject, Data: []byte("{bad"), Header: header}); err != nil {
			t.Fatal(err)
		}
	}
	bustest.Publish(t, nc, "fh.v1.trigger.orders", "1")
	bustest.RunIntake(t, nc, s, []intake.Subscription{
		{Flow: "orders", Trigger: "stream", Stream: "ORDERS"},
		{Flow: "orders", Trigger: "core", Subject: "shop.>"},
	}, intake.Config{})
	if err := nc.PublishMsg(&nats.Msg{Subject: "shop.a", Data: []byte("{bad"), Header: header}); err != nil {
		t.Fatal(err)
	}
	if _, code := bustest.Request(t, nc, "fh.v1.api.run.orders", "{bad", header); code != run.RequestPayload {
		t.Errorf("code = %q", code)
	}
	s.Payloads(t, 1) // a message after a bad one is read
	bustest.Eventually(t, "all are stored", func() bool { return len(bustest.Messages(t, nc, bus.StreamDeadLetter)) == 4 })
	var got []string
	for _, m := range bustest.Messages(t, nc, bus.StreamDeadLetter) {
		got = append(got, m.Subject+" "+m.Header.Get(bus.HeaderSubject)+" "+m.Header.Get(bus.HeaderCode))
		if string(m.Data) != "{bad" || m.Header.Get("X-Source") != "shop" || m.Header.Get(bus.HeaderReason) == "" {
			t.Errorf("dead letter %q, headers %v", m.Data, m.Header)
		}
	}
	slices.Sort(got)
	want := []string{
		"fh.v1.deadletter.orders fh.v1.api.run.orders payload",
		"fh.v1.deadletter.orders orders.new payload",
		"fh.v1.deadletter.orders shop.a payload",
		"fh.v1.deadletter.unknown fh.v1.trigger.unknown payload",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("dead letters (-want +got):\n%s", diff)
	}
	bustest.Eventually(t, "the stream's message is acknowledged", func() bool {
		c, err := st.Consumer(t.Context(), "flowhost_orders_stream")
		return err == nil && c.CachedInfo().AckFloor.Stream == 1
	})
	if mark, _ := s.Watermark(t.Context(), bus.StreamSource("ORDERS", "orders", "stream")); mark.Seq != 1 {
		t.Errorf("the refused message of the stream is not decided: the watermark is %+v", mark)
	}
}

// Whatever a publisher sends, it must not stop the stream behind it.
func TestDeadLetterThatDoesNotFit(t *testing.T) {
	t.Parallel()
	nc := bustest.Connect(t, bustest.StartServer(t, natsd.Config{}))
	s := &bustest.Starter{}
	js := bustest.JetStream(t, nc)
	long := strings.Repeat("h", 65_450)
	if _, err := js.PublishMsg(t.Context(), &nats.Msg{Subject: "fh.v1.trigger.unknown", Header: nats.Header{"X-Long": {long}}, Data: []byte("1")}); err != nil {
		t.Fatal(err)
	}
	bustest.Publish(t, nc, "fh.v1.trigger.unknown", `"`+strings.Repeat("b", jskit.MaxPayload-10)+`"`)
	bustest.Publish(t, nc, "fh.v1.trigger.orders", `"after"`)
	bustest.RunIntake(t, nc, s, nil, intake.Config{})
	s.Payloads(t, 1)
	letters := bustest.Messages(t, nc, bus.StreamDeadLetter)
	if len(letters) != 2 {
		t.Fatalf("%d dead letters, want 2", len(letters))
	}
	for i, size := range []int{1, jskit.MaxPayload - 8} {
		if m := letters[i]; len(m.Data) != 0 || m.Header.Get(bus.HeaderNoBody) != fmt.Sprint(size) || m.Header.Get("X-Long") != "" {
			t.Errorf("dead letter %d: %d bytes, %s = %q", i, len(m.Data), bus.HeaderNoBody, m.Header.Get(bus.HeaderNoBody))
		}
	}
}

// Decided messages leave the stream after its window for duplicates, in two steps.
func TestTriggersAreRemoved(t *testing.T) {
	t.Parallel()
	nc := bustest.Connect(t, bustest.StartServer(t, natsd.Config{}))
	js := bustest.JetStream(t, nc)
	st, err := js.Stream(t.Context(), bus.StreamTriggers)
	if err != nil {
		t.Fatal(err)
	}
	cfg := st.CachedInfo().Config
	cfg.Duplicates = 100 * time.Millisecond
	if _, err := js.UpdateStream(t.Context(), cfg); err != nil {
		t.Fatal(err)
	}
	s := &bustest.Starter{}
	bustest.RunIntake(t, nc, s, nil, intake.Config{})
	sent := 0
	bustest.Eventually(t, "the first message is removed", func() bool {
		bustest.Publish(t, nc, "fh.v1.trigger.orders", fmt.Sprint(sent))
		sent++
		info, err := st.Info(t.Context())
		return err == nil && info.State.FirstSeq > 1
	})
	if got := s.Payloads(t, sent); len(got) != sent || got[sent-1] != fmt.Sprint(sent-1) {
		t.Errorf("%d of %d messages were submitted", len(got), sent)
	}
}

// What is in the stream is submitted in batches. A message that is refused is
// decided before the next one is submitted.
func TestTriggersInBatches(t *testing.T) {
	t.Parallel()
	nc := bustest.Connect(t, bustest.StartServer(t, natsd.Config{}))
	s := &bustest.Starter{}
	s.OnSubmit = func(r run.Request) error {
		mark, err := s.Watermark(t.Context(), bus.SourceTriggers)
		if mark.Seq+1 != r.Position.Seq {
			t.Errorf("message %d is submitted while %d are decided", r.Position.Seq, mark.Seq)
		}
		return err
	}
	js := bustest.JetStream(t, nc)
	for i := range 600 {
		body := fmt.Sprint(i)
		if i%100 == 50 {
			body = "{bad"
		}
		if _, err := js.PublishAsync("fh.v1.trigger.orders", []byte(body)); err != nil {
			t.Fatal(err)
		}
	}
	<-js.PublishAsyncComplete()
	bustest.Publish(t, nc, "fh.v1.trigger.orders", `"`+strings.Repeat("x", 2<<20)+`"`, `"last"`)
	bustest.RunIntake(t, nc, s, nil, intake.Config{})
	got := s.Payloads(t, 596)
	if got[594] != `"`+strings.Repeat("x", 2<<20)+`"` || got[595] != `"last"` {
		t.Error("the large messages are not the last ones")
	}
	want := slices.DeleteFunc(numbers(0, 599), func(n string) bool { return strings.HasSuffix(n, "50") })
	if diff := cmp.Diff(want, got[:594]); diff != "" {
		t.Errorf("payloads (-want +got):\n%s", diff)
	}
	if n := len(bustest.Messages(t, nc, bus.StreamDeadLetter)); n != 6 {
		t.Errorf("%d dead letters, want 6", n)
	}
	s.Mu.Lock()
	defer s.Mu.Unlock()
	if n := len(s.Batches); n > 100 {
		t.Errorf("%d batches for 602 messages", n)
	}
	for _, batch := range s.Batches {
		if batch > 256 {
			t.Errorf("a batch has %d messages", batch)
		}
	}
}

// The id that makes a publisher's repetition harmless goes on to the engine.
func TestTriggerKeys(t *testing.T) {
	t.Parallel()
	nc := bustest.Connect(t, bustest.StartServer(t, natsd.Config{}))
	s := &bustest.Starter{}
	js := bustest.JetStream(t, nc)
	for _, header := range []nats.Header{{"Nats-Msg-Id": {"m1"}}, {"Nats-Msg-Id": {"m2"}, bus.HeaderKey: {"k2"}}, nil} {
		if _, err := js.PublishMsg(t.Context(), &nats.Msg{Subject: "fh.v1.trigger.orders", Header: header, Data: []byte("1")}); err != nil {
			t.Fatal(err)
		}
	}
	bustest.RunIntake(t, nc, s, nil, intake.Config{})
	s.Payloads(t, 3)
	var keys []string
	for _, r := range s.Accepted() {
		keys = append(keys, r.Key)
	}
	if want := []string{"m1", "k2", ""}; !slices.Equal(keys, want) {
		t.Errorf("keys %q, want %q", keys, want)
	}
}

// Messages that were acknowledged and are gone when their turn comes are reported with
// their sequences, once, and the others make their runs.
func TestMissingTriggersAreReported(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		decided uint64
		remove  []uint64
		want    []string
		lines   []string
		silent  bool
	}{
		"none":                      {0, nil, numbers(1, 9), nil, true},
		"decided ones":              {4, []uint64{1, 2, 3, 4}, numbers(5, 9), nil, true},
		"in between":                {0, []uint64{3, 4, 8}, []string{"1", "2", "5", "6", "7", "9"}, []string{"sequences=3-4 messages=2", "sequences=8 messages=1"}, false},
		"after the watermark":       {2, []uint64{3, 4, 5}, numbers(6, 9), []string{"sequences=3-5 messages=3"}, false},
		"first of all":              {0, []uint64{1}, numbers(2, 9), []string{"unless an earlier journal"}, false},
		"at the end, and all after": {6, []uint64{7, 8, 9}, nil, []string{"sequences=7-9 messages=3"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			nc := bustest.Connect(t, bustest.StartServer(t, natsd.Config{}))
			bustest.Publish(t, nc, "fh.v1.trigger.orders", numbers(1, 9)...)
			st, err := bustest.JetStream(t, nc).Stream(t.Context(), bus.StreamTriggers)
			if err != nil {
				t.Fatal(err)
			}
			s := &bustest.Starter{Watermarks: map[string]run.Position{}}
			if tt.decided > 0 {
				m, err := st.GetMsg(t.Context(), tt.decided)
				if err != nil {
					t.Fatal(err)
				}
				s.Watermarks[bus.SourceTriggers] = run.Position{Source: bus.SourceTriggers, Seq: tt.decided, At: m.Time}
			}
			for _, seq := range tt.remove {
				if err := st.DeleteMsg(t.Context(), seq); err != nil {
					t.Fatal(err)
				}
			}
			var log bustest.LogLines
			bustest.RunIntake(t, nc, s, nil, intake.Config{Log: log.Logger()})
			if len(tt.want) == 0 {
				bustest.Eventually(t, "the loss is reported without another message", func() bool { return log.Count("are missing") == 1 })
				bustest.Publish(t, nc, "fh.v1.trigger.orders", "10")
				tt.want = []string{"10"}
			}
			if got := s.Payloads(t, len(tt.want)); !slices.Equal(got, tt.want) {
				t.Errorf("payloads = %q", got)
			}
			for _, line := range tt.lines {
				if log.Count(line) != 1 {
					t.Errorf("%d lines say %q:\n%s", log.Count(line), line, log.All())
				}
			}
			if n := log.Count("level=ERROR"); tt.silent && n > 0 || !tt.silent && n != len(tt.lines) {
				t.Errorf("%d errors are logged:\n%s", n, log.All())
			}
		})
	}
}
