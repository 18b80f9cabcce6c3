package bus_test

import (
	"bytes"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/flowhost/flowhost/bus"
	"github.com/flowhost/flowhost/bus/internal/bustest"
	"github.com/flowhost/flowhost/bus/internal/jskit"
	"github.com/flowhost/flowhost/bus/journal"
	"github.com/flowhost/flowhost/bus/natsd"
)

func TestProvision(t *testing.T) {
	t.Parallel()
	s := bustest.StartServer(t, natsd.Config{})
	app, journal := bustest.Connect(t, s), bustest.ConnectJournal(t, s)
	for _, tt := range []struct {
		nc   *nats.Conn
		name string
		want bustest.Limits
	}{
		{journal, bus.StreamJournal, bustest.Limits{Discard: jetstream.DiscardNew, Bytes: 4 << 30, Message: -1, Age: 0, Replicas: 1, Window: 15 * time.Second, Subjects: []string{"fh.v1.journal.*"}}},
		{app, bus.StreamTriggers, bustest.Limits{Discard: jetstream.DiscardNew, Bytes: 1 << 30, Message: jskit.MaxPayload, Age: 0, Replicas: 1, Window: 2 * time.Minute, Subjects: []string{"fh.v1.trigger.*"}}},
		{app, bus.StreamEvents, bustest.Limits{Discard: jetstream.DiscardOld, Bytes: 256 << 20, Message: -1, Age: 7 * 24 * time.Hour, Replicas: 1, Window: 15 * time.Second, Subjects: []string{"fh.v1.events.*.*"}}},
		{app, bus.StreamHistory, bustest.Limits{Discard: jetstream.DiscardOld, Bytes: 4 << 30, Message: -1, Age: 30 * 24 * time.Hour, Replicas: 1, Window: 15 * time.Second, Subjects: []string{"fh.v1.history.*.*", "fh.v1.historypart.*.*.*", "fh.v1.flush.FH_HISTORY"}}},
		{app, bus.StreamMarks, bustest.Limits{Discard: jetstream.DiscardOld, Bytes: 1 << 20, Message: -1, Age: 0, Replicas: 1, Window: 15 * time.Second, Subjects: []string{"fh.v1.mark.*"}}},
		{app, bus.StreamDeadLetter, bustest.Limits{Discard: jetstream.DiscardOld, Bytes: 256 << 20, Message: -1, Age: 30 * 24 * time.Hour, Replicas: 1, Window: 2 * time.Minute, Subjects: []string{"fh.v1.deadletter.*"}}},
	} {
		if diff := cmp.Diff(tt.want, bustest.StreamLimits(t, tt.nc, tt.name)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.name, diff)
		}
	}
}

func TestProvisionAgain(t *testing.T) {
	t.Parallel()
	nc := bustest.Connect(t, bustest.StartServer(t, natsd.Config{}))
	if err := bustest.ProvisionAll(t, nc, bus.StreamConfig{EventBytes: 1 << 20, EventAge: time.Hour, TriggerBytes: 2 << 20, HistoryPerFlow: 7}); err != nil {
		t.Fatal(err)
	}
	if err := nc.Publish("fh.v1.events.a.b", []byte("kept")); err != nil {
		t.Fatal(err)
	}
	// Nothing asked for leaves it so.
	if err := bustest.ProvisionAll(t, nc, bus.StreamConfig{}); err != nil {
		t.Fatal(err)
	}
	if got := bustest.StreamLimits(t, nc, bus.StreamEvents); got.Bytes != 1<<20 || got.Age != time.Hour {
		t.Errorf("events: %+v", got)
	}
	if got := bustest.StreamLimits(t, nc, bus.StreamTriggers); got.Bytes != 2<<20 {
		t.Errorf("triggers: %+v", got)
	}
	if got := perSubject(t, nc, bus.StreamHistory); got != 7 {
		t.Errorf("history: %d records of a flow in a state, want 7", got)
	}
	if got := perSubject(t, bustest.Connect(t, bustest.StartServer(t, natsd.Config{})), bus.StreamHistory); got != bus.DefaultHistoryPerFlow {
		t.Errorf("history: %d records of a flow in a state, want %d", got, bus.DefaultHistoryPerFlow)
	}
	if got := bustest.Messages(t, nc, bus.StreamEvents); len(got) != 1 || string(got[0].Data) != "kept" {
		t.Errorf("events: %v", got)
	}
}

func perSubject(t *testing.T, nc *nats.Conn, name string) int64 {
	t.Helper()
	stream, err := bustest.JetStream(t, nc).Stream(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	return stream.CachedInfo().Config.MaxMsgsPerSubject
}

func TestProvisionRepairsJournal(t *testing.T) {
	t.Parallel()
	nc := bustest.ConnectJournal(t, bustest.StartServer(t, natsd.Config{}))
	js := bustest.JetStream(t, nc)
	stream, err := js.Stream(t.Context(), bus.StreamJournal)
	if err != nil {
		t.Fatal(err)
	}
	cfg := stream.CachedInfo().Config
	cfg.Discard, cfg.MaxAge, cfg.MaxMsgs = jetstream.DiscardOld, time.Hour, 10
	cfg.MaxMsgsPerSubject = 5
	if _, err := js.UpdateStream(t.Context(), cfg); err != nil {
		t.Fatal(err)
	}
	if err := bus.ProvisionJournal(t.Context(), nc, bus.StreamConfig{}); err != nil {
		t.Fatal(err)
	}
	stream, err = js.Stream(t.Context(), bus.StreamJournal)
	if err != nil {
		t.Fatal(err)
	}
	got := stream.CachedInfo().Config
	if got.Discard != jetstream.DiscardNew || got.MaxAge != 0 || got.MaxMsgs != -1 || got.MaxMsgsPerSubject != -1 {
		t.Errorf("the journal would still lose commits: %+v", got)
	}
}

func TestProvisionKeepsJournal(t *testing.T) {
	t.Parallel()
	nc := bustest.ConnectJournal(t, bustest.StartServer(t, natsd.Config{}))
	j := bustest.OpenJournal(t, nc, journal.Config{})
	if _, err := j.Append(t.Context(), 0, bytes.Repeat([]byte("x"), 10<<10)); err != nil {
		t.Fatal(err)
	}
	err := bus.ProvisionJournal(t.Context(), nc, bus.StreamConfig{JournalBytes: 4 << 10})
	var refused *bus.ProvisionError
	if !errors.As(err, &refused) || refused.Stream != bus.StreamJournal {
		t.Fatalf("ProvisionJournal = %v, want a *ProvisionError", err)
	}
	if got := bustest.Messages(t, nc, bus.StreamJournal); len(got) != 1 {
		t.Errorf("the journal holds %d commits, want 1", len(got))
	}
}
