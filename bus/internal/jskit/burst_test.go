package jskit_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/flowhost/flowhost/bus/internal/bustest"
	"github.com/flowhost/flowhost/bus/internal/jskit"
	"github.com/flowhost/flowhost/bus/natsd"
)

// A burst is acknowledged as a whole, or not at all: what is uncertain is sent again.
func TestBurst(t *testing.T) {
	t.Parallel()
	nc := bustest.Connect(t, bustest.StartServer(t, natsd.Config{}))
	js, err := jetstream.New(nc, jetstream.WithPublishAsyncTimeout(bustest.Patience))
	if err != nil {
		t.Fatal(err)
	}
	stream, err := js.CreateStream(t.Context(), jetstream.StreamConfig{
		Name: "BURST", Subjects: []string{"burst.*"}, Storage: jetstream.MemoryStorage, MaxMsgSize: 1000, Duplicates: time.Minute,
	})
	if err != nil {
		t.Fatal(err)
	}
	messages := func(kind string, n, large int) (all []*nats.Msg) {
		for i := range n {
			m := &nats.Msg{Subject: "burst." + kind, Data: []byte("small"), Header: nats.Header{jetstream.MsgIDHeader: {fmt.Sprint(kind, i)}}}
			if i == large {
				m.Data = []byte(strings.Repeat("x", 2000))
			}
			all = append(all, m)
		}
		return all
	}
	stored := func() uint64 {
		info, err := stream.Info(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return info.State.LastSeq
	}

	acks := jskit.Burst(t.Context(), js, messages("good", 100, -1))
	if len(acks) != 100 || stored() != 100 {
		t.Fatalf("%d acknowledgements, %d messages", len(acks), stored())
	}
	for i, ack := range acks {
		if msg, err := stream.GetMsg(t.Context(), ack.Sequence); err != nil || msg.Header.Get(jetstream.MsgIDHeader) != fmt.Sprint("good", i) {
			t.Fatalf("message %d: %v, %v", i, msg, err)
		}
	}
	for name, batch := range map[string][]*nats.Msg{
		"too few":                          messages("few", 3, -1),
		"one in between is refused":        messages("middle", 10, 5),
		"the first one is refused":         messages("first", 10, 0),
		"the last one is refused":          messages("last", 10, 9),
		"all are stored already":           messages("good", 10, -1),
		"the last of them is stored":       append(messages("new", 5, -1), messages("good", 1, -1)...),
		"one in between is stored already": append(append(messages("other", 3, -1), messages("good", 1, -1)...), messages("others", 3, -1)...),
	} {
		if acks := jskit.Burst(t.Context(), js, batch); acks != nil {
			t.Errorf("%s: %d acknowledgements", name, len(acks))
		}
	}
}
