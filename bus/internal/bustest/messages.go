package bustest

import (
	"slices"
	"strconv"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/flowhost/flowhost/bus/intake"
)

func Listen(t *testing.T, in *intake.Intake, swap func() error, triggers ...intake.Subscription) {
	t.Helper()
	if err := in.Listen(t.Context(), triggers, swap); err != nil {
		t.Fatal(err)
	}
}

// Heard gives the accepted payloads with the triggers that took them, sorted.
func Heard(s *Starter) []string {
	var all []string
	for _, r := range s.Accepted() {
		all = append(all, r.Trigger.Name+" "+string(r.Trigger.Payload))
	}
	slices.Sort(all)
	return all
}

func PublishCore(t *testing.T, nc *nats.Conn, subjects ...string) {
	t.Helper()
	for _, subject := range subjects {
		if err := nc.Publish(subject, []byte(strconv.Quote(subject))); err != nil {
			t.Fatal(err)
		}
	}
	if err := nc.Flush(); err != nil {
		t.Fatal(err)
	}
}

// Publish stores messages in a stream.
func Publish(t *testing.T, nc *nats.Conn, subject string, bodies ...string) {
	t.Helper()
	js := JetStream(t, nc)
	for _, body := range bodies {
		if _, err := js.Publish(t.Context(), subject, []byte(body)); err != nil {
			t.Fatal(err)
		}
	}
}

func Stream(t *testing.T, nc *nats.Conn, name, subjects string) jetstream.Stream {
	t.Helper()
	st, err := JetStream(t, nc).CreateStream(t.Context(), jetstream.StreamConfig{Name: name, Subjects: []string{subjects}, MaxBytes: 1 << 20})
	if err != nil {
		t.Fatal(err)
	}
	return st
}
