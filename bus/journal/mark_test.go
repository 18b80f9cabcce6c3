package journal_test

import (
	"errors"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/flowhost/flowhost/bus"
	"github.com/flowhost/flowhost/bus/internal/bustest"
	"github.com/flowhost/flowhost/bus/journal"
	"github.com/flowhost/flowhost/bus/natsd"
)

// The mark says how far others know of the journal, also after its stream is gone.
func TestMark(t *testing.T) {
	t.Parallel()
	nc := bustest.Connect(t, bustest.StartServer(t, natsd.Config{}))
	var log bustest.LogLines
	m, err := journal.NewMark(nc, 0, journal.MarkConfig{Timeout: time.Second, Log: log.Logger()})
	if err != nil {
		t.Fatal(err)
	}
	last := func() uint64 {
		t.Helper()
		other, err := journal.NewMark(nc, 0, journal.MarkConfig{})
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
	bustest.RunPart(t, m.Run)
	bustest.KeepStreams(t, nc, &log, bus.StreamConfig{})
	for revision := range uint64(5000) {
		m.Durable(revision + 1)
	}
	bustest.Eventually(t, "the mark", func() bool { return last() == 5000 })
	m.Durable(5001)
	if err := m.Flush(t.Context()); err != nil || last() != 5001 {
		t.Errorf("after a flush: %d, %v", last(), err)
	}
	m.Durable(7) // a loss was accepted
	bustest.Eventually(t, "the mark goes back", func() bool { return last() == 7 })
	if err := bustest.JetStream(t, nc).DeleteStream(t.Context(), bus.StreamMarks); err != nil {
		t.Fatal(err)
	}
	m.Durable(8)
	bustest.Eventually(t, "a new mark", func() bool { return last() == 8 })
	bustest.Eventually(t, "the log tells", func() bool { return log.Count("a stream was removed") == 1 })
	if got := len(bustest.Messages(t, nc, bus.StreamMarks)); got != 1 {
		t.Errorf("the stream holds %d messages, want 1", got)
	}
}
