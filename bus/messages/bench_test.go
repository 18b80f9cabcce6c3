package messages_test

import (
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/flowhost/flowhost/bus/internal/bustest"
	"github.com/flowhost/flowhost/bus/messages"
	"github.com/flowhost/flowhost/bus/natsd"
	"github.com/flowhost/flowhost/run/access"
)

// BenchmarkOperations has each operation beside the same by nats.go, with bodies of 256
// bytes, and what it would cost to ask for the stream each time.
func BenchmarkOperations(b *testing.B) {
	nc := connect(b, bustest.StartServer(b, natsd.Config{}))
	stream(b, nc, jetstream.StreamConfig{Name: "AUDIT", Subjects: []string{"audit.>"}, MaxMsgs: 10_000})
	js := bustest.JetStream(b, nc)
	if _, err := nc.Subscribe("pricing.v2.*", func(m *nats.Msg) { _ = m.Respond(m.Data) }); err != nil {
		b.Fatal(err)
	}
	m := open(b, messages.Config{Conn: nc})
	body := make([]byte, 256)
	s := m.Session(caller, granted.Always)
	own := func(kind, name string) func(*testing.B) error {
		op := operation(kind, subject(name), body)
		return func(b *testing.B) error {
			if f := s.Do(b.Context(), op).Fault; f != nil {
				return f
			}
			return nil
		}
	}
	for _, bench := range []struct {
		name string
		do   func(*testing.B) error
	}{
		{"stored", own(access.KindPublish, "audit.a")},
		{"stored-native", func(b *testing.B) error {
			_, err := js.Publish(b.Context(), "audit.a", body)
			return err
		}},
		{"sent", own(access.KindPublish, "orders.priced.a")},
		{"sent-native", func(b *testing.B) error {
			if err := nc.Publish("orders.priced.a", body); err != nil {
				return err
			}
			return nc.FlushTimeout(bustest.Patience)
		}},
		{"request", own(access.KindRequest, "pricing.v2.a")},
		{"request-native", func(b *testing.B) error {
			_, err := nc.RequestWithContext(b.Context(), "pricing.v2.a", body)
			return err
		}},
		{"question-native", func(b *testing.B) error {
			_, err := js.StreamNameBySubject(b.Context(), "audit.a")
			return err
		}},
	} {
		b.Run(bench.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if err := bench.do(b); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
