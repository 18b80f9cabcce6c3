package bustest

import (
	"fmt"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"

	"github.com/flowhost/flowhost/bus"
	"github.com/flowhost/flowhost/bus/journal"
)

// external is a NATS server that an operator runs, with one account for all.
type external struct {
	t    *testing.T
	Opts server.Options
	ns   *server.Server
}

// NewExternal finds a free port that the server keeps over restarts.
func NewExternal(t *testing.T) *external {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	e := &external{t: t, Opts: server.Options{
		Host: "127.0.0.1", Port: l.Addr().(*net.TCPAddr).Port, NoSigs: true, NoLog: true,
		JetStream: true, StoreDir: t.TempDir(), JetStreamMaxStore: 1 << 40, JetStreamMaxMemory: 1 << 30,
	}}
	t.Cleanup(func() { e.Stop() })
	return e
}

func (e *external) Start() {
	e.t.Helper()
	opts := e.Opts
	ns, err := server.NewServer(&opts)
	if err != nil {
		e.t.Fatal(err)
	}
	ns.Start()
	e.ns = ns
	if !ns.ReadyForConnections(Patience) {
		e.t.Fatal("the external server does not start")
	}
}

func (e *external) Stop() {
	if e.ns != nil {
		e.ns.Shutdown()
		e.ns.WaitForShutdown()
	}
}

func (e *external) Address() string { return fmt.Sprintf("127.0.0.1:%d", e.Opts.Port) }

func (e *external) Connect(log *LogLines, address string) *nats.Conn {
	e.t.Helper()
	nc, err := bus.Connect(e.t.Context(), bus.ConnectConfig{URL: "nats://" + address, Log: log.Logger()})
	if err != nil {
		e.t.Fatal(err)
	}
	e.t.Cleanup(nc.Close)
	return nc
}

func (e *external) Journal(nc *nats.Conn, log *LogLines) *journal.Journal {
	e.t.Helper()
	if err := bus.ProvisionJournal(e.t.Context(), nc, bus.StreamConfig{}); err != nil {
		e.t.Fatal(err)
	}
	return OpenJournal(e.t, nc, journal.Config{Timeout: 200 * time.Millisecond, Log: log.Logger()})
}

// relay passes a connection on and can lose what comes from the server.
type relay struct {
	listener net.Listener
	Mute     atomic.Bool
}

func NewRelay(t *testing.T, to string) *relay {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	r := &relay{listener: l}
	var open sync.WaitGroup
	open.Go(func() {
		for {
			client, err := l.Accept()
			if err != nil {
				return
			}
			upstream, err := net.Dial("tcp", to)
			if err != nil {
				client.Close()
				continue
			}
			open.Go(func() { defer upstream.Close(); _, _ = io.Copy(upstream, client) })
			open.Go(func() { defer client.Close(); r.answer(client, upstream) })
		}
	})
	t.Cleanup(func() { l.Close(); open.Wait() })
	return r
}

func (r *relay) Address() string { return r.listener.Addr().String() }

func (r *relay) answer(client io.Writer, upstream io.Reader) {
	chunk := make([]byte, 64<<10)
	for {
		n, err := upstream.Read(chunk)
		if err != nil {
			return
		}
		if r.Mute.Load() {
			continue
		}
		if _, err := client.Write(chunk[:n]); err != nil {
			return
		}
	}
}
