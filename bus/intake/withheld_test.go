package intake_test

import (
	"slices"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/flowhost/flowhost/bus"
	"github.com/flowhost/flowhost/bus/events"
	"github.com/flowhost/flowhost/bus/intake"
	"github.com/flowhost/flowhost/bus/internal/bustest"
	"github.com/flowhost/flowhost/bus/natsd"
	"github.com/flowhost/flowhost/run"
)

// A stream of others may hold reserved subjects, and copies of tasks' logs: the flow
// gets neither, and what follows.
func TestReservedSubjectsAreWithheld(t *testing.T) {
	t.Parallel()
	nc := bustest.Connect(t, bustest.StartServer(t, natsd.Config{}))
	_, err := bustest.JetStream(t, nc).CreateStream(t.Context(), jetstream.StreamConfig{Name: "MIX", Subjects: []string{"orders.*", "_private.*"}, MaxBytes: 1 << 20})
	if err != nil {
		t.Fatal(err)
	}
	bustest.Publish(t, nc, "_private.inbox", "1")
	bustest.Publish(t, nc, "orders.new", "2")
	line := &nats.Msg{Subject: "orders.log", Data: []byte("3"), Header: nats.Header{bus.HeaderAttempt: {"1"}}}
	if _, err := bustest.JetStream(t, nc).PublishMsg(t.Context(), line); err != nil {
		t.Fatal(err)
	}
	bustest.Publish(t, nc, "orders.new", "4")
	s := &bustest.Starter{}
	bustest.RunIntake(t, nc, s, []intake.Subscription{{Flow: "spy", Trigger: "all", Stream: "MIX"}}, intake.Config{})
	if got := s.Payloads(t, 2); !slices.Equal(got, []string{"2", "4"}) {
		t.Errorf("payloads = %q", got)
	}
	if got := s.Attempts(); got != 2 {
		t.Errorf("%d messages were submitted", got)
	}
}

// A message after too many hops starts no run: whoever asked is answered, it becomes
// a dead letter, and a copy of that letter becomes no other one.
func TestLoopsEndInDeadLetters(t *testing.T) {
	t.Parallel()
	nc := bustest.Connect(t, bustest.StartServer(t, natsd.Config{}))
	s := &bustest.Starter{OnSubmit: func(r run.Request) error {
		_, err := r.Trigger.Hops()
		return err
	}}
	var log bustest.LogLines
	bustest.RunIntake(t, nc, s, []intake.Subscription{{Flow: "orders", Trigger: "new", Subject: "orders.*"}}, intake.Config{Log: log.Logger()})
	for _, tt := range []struct {
		hops string
		code string
	}{{"0", ""}, {"16", ""}, {"17", run.RequestLoop}, {"100", run.RequestLoop}, {"x", run.RequestHeader}} {
		for _, subject := range []string{"orders.new", "fh.v1.api.run.orders"} {
			if _, code := bustest.Request(t, nc, subject, "{}", nats.Header{run.HeaderHops: {tt.hops}}); code != tt.code {
				t.Errorf("%s after %s hops: code %q, want %q", subject, tt.hops, code, tt.code)
			}
		}
	}
	letters := bustest.Messages(t, nc, bus.StreamDeadLetter)
	if len(letters) != 6 || log.Count("a message starts no run") != 4 {
		t.Errorf("%d dead letters, %d lines in the log", len(letters), log.Count("a message starts no run"))
	}
	for _, letter := range letters { // each would start a run, or a letter, if it came back by another subject
		copied := nats.Header(letter.Header)
		copied.Del(jetstream.ExpectedStreamHeader)
		if _, code := bustest.Request(t, nc, "orders.copied", "{}", copied); code != run.RequestLoop {
			t.Errorf("the copy of a dead letter is answered %q", code)
		}
	}
	if got := len(bustest.Messages(t, nc, bus.StreamDeadLetter)); got != len(letters) {
		t.Errorf("copies of %d dead letters made %d", len(letters), got-len(letters))
	}
}

// What flowhost publishes about a run carries the hops that led to it, and its own.
func TestEventsCountHops(t *testing.T) {
	t.Parallel()
	nc := bustest.Connect(t, bustest.StartServer(t, natsd.Config{}))
	n := bustest.Notice(1, 0, &run.Finished{State: run.Succeeded})
	n.Hops = 3
	bustest.Give(t, bustest.Publisher(t, nc, events.Config{}), n)
	bustest.Eventually(t, "the event is published", func() bool { return len(bustest.Messages(t, nc, bus.StreamEvents)) == 1 })
	if got := bustest.Messages(t, nc, bus.StreamEvents)[0].Header.Get(run.HeaderHops); got != "11" {
		t.Errorf("%q hops, want 11", got)
	}
}
