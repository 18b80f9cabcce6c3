package bustest

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/flowhost/flowhost/bus"
	"github.com/flowhost/flowhost/bus/journal"
	"github.com/flowhost/flowhost/bus/natsd"
)

// Patience is how long a test waits for what must happen.
const Patience = 20 * time.Second

// StartServer starts a server on a directory of its own, without a listener unless
// asked for, and stops it with the test.
func StartServer(t testing.TB, cfg natsd.Config) *natsd.Server {
	t.Helper()
	if cfg.Dir == "" {
		cfg.Dir = t.TempDir()
	}
	if cfg.Listen == "" {
		cfg.NoListen = true
	}
	s, err := natsd.Start(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { StopServer(t, s) })
	return s
}

func StopServer(t testing.TB, s *natsd.Server) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), Patience)
	defer cancel()
	if err := s.Shutdown(ctx); err != nil {
		t.Error(err)
	}
}

// Connect gives a connection to the engine's account with its streams in place, but
// those of the journal, and with that of events.
func Connect(t testing.TB, s *natsd.Server) *nats.Conn {
	t.Helper()
	nc, err := s.ConnectEngine()
	if err != nil {
		t.Fatal(err)
	}
	if err := ProvisionAll(t, nc, bus.StreamConfig{}); err != nil {
		t.Fatal(err)
	}
	return nc
}

// ConnectApp gives a connection to the app account with its stream in place.
func ConnectApp(t testing.TB, s *natsd.Server) *nats.Conn {
	t.Helper()
	nc, err := s.ConnectApp()
	if err != nil {
		t.Fatal(err)
	}
	if err := bus.ProvisionEvents(t.Context(), nc, bus.StreamConfig{}); err != nil {
		t.Fatal(err)
	}
	return nc
}

func ProvisionAll(t testing.TB, nc *nats.Conn, cfg bus.StreamConfig) error {
	return errors.Join(bus.Provision(t.Context(), nc, cfg), bus.ProvisionEvents(t.Context(), nc, cfg))
}

func ConnectJournal(t testing.TB, s *natsd.Server) *nats.Conn {
	t.Helper()
	nc, err := s.ConnectEngine()
	if err != nil {
		t.Fatal(err)
	}
	if err := bus.ProvisionJournal(t.Context(), nc, bus.StreamConfig{}); err != nil {
		t.Fatal(err)
	}
	return nc
}

func OpenJournal(t testing.TB, nc *nats.Conn, cfg journal.Config) *journal.Journal {
	t.Helper()
	j, err := journal.New(t.Context(), nc, 0, cfg)
	if err != nil {
		t.Fatal(err)
	}
	return j
}

func JetStream(t testing.TB, nc *nats.Conn) jetstream.JetStream {
	t.Helper()
	js, err := jetstream.New(nc)
	if err != nil {
		t.Fatal(err)
	}
	return js
}

// Messages reads a whole stream by direct requests.
func Messages(t testing.TB, nc *nats.Conn, name string) []*jetstream.RawStreamMsg {
	t.Helper()
	stream, err := JetStream(t, nc).Stream(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	state := stream.CachedInfo().State
	var all []*jetstream.RawStreamMsg
	for seq := max(state.FirstSeq, 1); seq <= state.LastSeq; seq++ {
		msg, err := stream.GetMsg(t.Context(), seq)
		if errors.Is(err, jetstream.ErrMsgNotFound) {
			continue // a mark that a flush left and removed
		}
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, msg)
	}
	return all
}

// Eventually waits until ok; what is changed by the test itself needs no waiting.
func Eventually(t testing.TB, what string, ok func() bool) {
	t.Helper()
	deadline := time.NewTimer(Patience)
	defer deadline.Stop()
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for !ok() {
		select {
		case <-tick.C:
		case <-deadline.C:
			t.Fatalf("%s: not within %s", what, Patience)
		}
	}
}

// LogLines collects a log.
type LogLines struct {
	mu   sync.Mutex
	Text strings.Builder
}

func (l *LogLines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.Text.Write(p)
}

func (l *LogLines) Logger() *slog.Logger { return slog.New(slog.NewTextHandler(l, nil)) }

func (l *LogLines) Count(part string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Count(l.Text.String(), part)
}

func (l *LogLines) All() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.Text.String()
}
