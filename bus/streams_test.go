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
)

type limits struct {
	Discard  jetstream.DiscardPolicy
	Bytes    int64
	Message  int32
	Age      time.Duration
	Replicas int
	Window   time.Duration
	Subjects []string
}

func streamLimits(t *testing.T, nc *nats.Conn, name string) limits {
	t.Helper()
	stream, err := jetStream(t, nc).Stream(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	c := stream.CachedInfo().Config
	if c.Retention != jetstream.LimitsPolicy || c.Storage != jetstream.FileStorage {
		t.Errorf("%s: retention %v, storage %v", name, c.Retention, c.Storage)
	}
	return limits{c.Discard, c.MaxBytes, c.MaxMsgSize, c.MaxAge, c.Replicas, c.Duplicates, c.Subjects}
}

func TestProvision(t *testing.T) {
	t.Parallel()
	s := startServer(t, bus.ServerConfig{})
	app, journal := connect(t, s), connectJournal(t, s)
	for _, tt := range []struct {
		nc   *nats.Conn
		name string
		want limits
	}{
		{journal, bus.StreamJournal, limits{jetstream.DiscardNew, 4 << 30, -1, 0, 1, 15 * time.Second, []string{"fh.v1.journal.*"}}},
		{app, bus.StreamTriggers, limits{jetstream.DiscardNew, 1 << 30, bus.MaxPayload, 0, 1, 2 * time.Minute, []string{"fh.v1.trigger.*"}}},
		{app, bus.StreamEvents, limits{jetstream.DiscardOld, 256 << 20, -1, 7 * 24 * time.Hour, 1, 15 * time.Second, []string{"fh.v1.events.*.*"}}},
		{app, bus.StreamHistory, limits{jetstream.DiscardOld, 4 << 30, -1, 30 * 24 * time.Hour, 1, 15 * time.Second, []string{"fh.v1.history.*.*", "fh.v1.historypart.*.*.*", "fh.v1.flush.FH_HISTORY"}}},
		{app, bus.StreamMarks, limits{jetstream.DiscardOld, 1 << 20, -1, 0, 1, 15 * time.Second, []string{"fh.v1.mark.*"}}},
		{app, bus.StreamDeadLetter, limits{jetstream.DiscardOld, 256 << 20, -1, 30 * 24 * time.Hour, 1, 2 * time.Minute, []string{"fh.v1.deadletter.*"}}},
	} {
		if diff := cmp.Diff(tt.want, streamLimits(t, tt.nc, tt.name)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.name, diff)
		}
	}
}

func TestProvisionAgain(t *testing.T) {
	t.Parallel()
	nc := connect(t, startServer(t, bus.ServerConfig{}))
	if err := provisionAll(t, nc, bus.StreamConfig{EventBytes: 1 << 20, EventAge: time.Hour, TriggerBytes: 2 << 20, HistoryPerFlow: 7}); err != nil {
		t.Fatal(err)
	}
	if err := nc.Publish("fh.v1.events.a.b", []byte("kept")); err != nil {
		t.Fatal(err)
	}
	// Nothing asked for leaves it so.
	if err := provisionAll(t, nc, bus.StreamConfig{}); err != nil {
		t.Fatal(err)
	}
	if got := streamLimits(t, nc, bus.StreamEvents); got.Bytes != 1<<20 || got.Age != time.Hour {
		t.Errorf("events: %+v", got)
	}
	if got := streamLimits(t, nc, bus.StreamTriggers); got.Bytes != 2<<20 {
		t.Errorf("triggers: %+v", got)
	}
	if got := perSubject(t, nc, bus.StreamHistory); got != 7 {
		t.Errorf("history: %d records of a flow in a state, want 7", got)
	}
	if got := perSubject(t, connect(t, startServer(t, bus.ServerConfig{})), bus.StreamHistory); got != bus.DefaultHistoryPerFlow {
		t.Errorf("history: %d records of a flow in a state, want %d", got, bus.DefaultHistoryPerFlow)
	}
	if got := messages(t, nc, bus.StreamEvents); len(got) != 1 || string(got[0].Data) != "kept" {
		t.Errorf("events: %v", got)
	}
}

func perSubject(t *testing.T, nc *nats.Conn, name string) int64 {
	t.Helper()
	stream, err := jetStream(t, nc).Stream(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	return stream.CachedInfo().Config.MaxMsgsPerSubject
}

func TestProvisionRepairsJournal(t *testing.T) {
	t.Parallel()
	nc := connectJournal(t, startServer(t, bus.ServerConfig{}))
	js := jetStream(t, nc)
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
	nc := connectJournal(t, startServer(t, bus.ServerConfig{}))
	j := openJournal(t, nc, bus.JournalConfig{})
	if _, err := j.Append(t.Context(), 0, bytes.Repeat([]byte("x"), 10<<10)); err != nil {
		t.Fatal(err)
	}
	err := bus.ProvisionJournal(t.Context(), nc, bus.StreamConfig{JournalBytes: 4 << 10})
	var refused *bus.ProvisionError
	if !errors.As(err, &refused) || refused.Stream != bus.StreamJournal {
		t.Fatalf("ProvisionJournal = %v, want a *ProvisionError", err)
	}
	if got := messages(t, nc, bus.StreamJournal); len(got) != 1 {
		t.Errorf("the journal holds %d commits, want 1", len(got))
	}
}
