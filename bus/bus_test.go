package bus_test

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
	"go.uber.org/goleak"

	"github.com/flowhost/flowhost/bus"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// patience is how long a test waits for what must happen.
const patience = 20 * time.Second

// startServer starts a server on a folder of its own, without a listener unless
// asked for, and stops it with the test.
func startServer(t testing.TB, cfg bus.ServerConfig) *bus.Server {
	t.Helper()
	if cfg.Dir == "" {
		cfg.Dir = t.TempDir()
	}
	if cfg.Listen == "" {
		cfg.NoListen = true
	}
	s, err := bus.StartServer(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { stopServer(t, s) })
	return s
}

func stopServer(t testing.TB, s *bus.Server) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if err := s.Shutdown(ctx); err != nil {
		t.Error(err)
	}
}

// connect gives a connection to the engine's account with its streams in place, but
// those of the journal, and with that of events.
func connect(t testing.TB, s *bus.Server) *nats.Conn {
	t.Helper()
	nc, err := s.ConnectEngine()
	if err != nil {
		t.Fatal(err)
	}
	if err := provisionAll(t, nc, bus.StreamConfig{}); err != nil {
		t.Fatal(err)
	}
	return nc
}

// connectApp gives a connection to the app account with its stream in place.
func connectApp(t testing.TB, s *bus.Server) *nats.Conn {
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

func provisionAll(t testing.TB, nc *nats.Conn, cfg bus.StreamConfig) error {
	return errors.Join(bus.Provision(t.Context(), nc, cfg), bus.ProvisionEvents(t.Context(), nc, cfg))
}

func connectJournal(t testing.TB, s *bus.Server) *nats.Conn {
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

func openJournal(t testing.TB, nc *nats.Conn, cfg bus.JournalConfig) *bus.Journal {
	t.Helper()
	j, err := bus.NewJournal(t.Context(), nc, 0, cfg)
	if err != nil {
		t.Fatal(err)
	}
	return j
}

func jetStream(t testing.TB, nc *nats.Conn) jetstream.JetStream {
	t.Helper()
	js, err := jetstream.New(nc)
	if err != nil {
		t.Fatal(err)
	}
	return js
}

// messages reads a whole stream by direct requests.
func messages(t testing.TB, nc *nats.Conn, name string) []*jetstream.RawStreamMsg {
	t.Helper()
	stream, err := jetStream(t, nc).Stream(t.Context(), name)
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

// eventually waits until ok; what is changed by the test itself needs no waiting.
func eventually(t testing.TB, what string, ok func() bool) {
	t.Helper()
	deadline := time.NewTimer(patience)
	defer deadline.Stop()
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for !ok() {
		select {
		case <-tick.C:
		case <-deadline.C:
			t.Fatalf("%s: not within %s", what, patience)
		}
	}
}

// logLines collects a log.
type logLines struct {
	mu   sync.Mutex
	text strings.Builder
}

func (l *logLines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *logLines) logger() *slog.Logger { return slog.New(slog.NewTextHandler(l, nil)) }

func (l *logLines) count(part string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Count(l.text.String(), part)
}

func (l *logLines) all() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}
