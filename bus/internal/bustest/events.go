package bustest

import (
	"context"
	"encoding/json"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/flowhost/flowhost/bus"
	"github.com/flowhost/flowhost/bus/events"
	"github.com/flowhost/flowhost/run"
)

const RunID = run.ID("01ARZ3NDEKTSV4RRFFQ69G5FAV")

// Publisher starts a publisher of events that ends with the test.
func Publisher(t testing.TB, nc *nats.Conn, cfg events.Config) *events.Publisher {
	t.Helper()
	e, err := events.New(nc, 0, cfg)
	if err != nil {
		t.Fatal(err)
	}
	RunPart(t, e.Run)
	return e
}

// RunPart runs what works beside an engine until the test ends.
func RunPart(t testing.TB, work func(context.Context) error) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() {
		if err := work(ctx); !errors.Is(err, context.Canceled) {
			t.Errorf("Run = %v", err)
		}
	})
	t.Cleanup(func() { cancel(); running.Wait() })
}

// KeepStreams has streams made again when they are gone.
func KeepStreams(t testing.TB, nc *nats.Conn, log *LogLines, cfg bus.StreamConfig) {
	t.Helper()
	if err := bus.ProvisionJournal(t.Context(), nc, bus.StreamConfig{}); err != nil {
		t.Fatal(err)
	}
	RunPart(t, bus.NewKeeper(bus.KeeperConfig{Engine: nc, App: nc, Streams: cfg, Every: 20 * time.Millisecond, Log: log.Logger()}).Run)
}

func Notice(revision uint64, index int, data run.EventData) run.Notice {
	return run.Notice{Revision: revision, Index: index, Flow: "orders", Event: run.Event{Run: RunID, At: time.Now().UTC(), Data: data}}
}

func Give(t testing.TB, e *events.Publisher, notices ...run.Notice) {
	t.Helper()
	for _, n := range notices {
		if err := e.Committed(t.Context(), n); err != nil {
			t.Fatal(err)
		}
	}
	if err := e.Drain(t.Context()); err != nil {
		t.Fatal(err)
	}
}

func IdOf(t testing.TB, event []byte) string {
	t.Helper()
	var e struct{ ID string }
	if err := json.Unmarshal(event, &e); err != nil {
		t.Fatal(err)
	}
	return e.ID
}
