package bus_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"

	"github.com/flowhost/flowhost/bus"
)

// external is a NATS server that an operator runs, with one account for all.
type external struct {
	t    *testing.T
	opts server.Options
	ns   *server.Server
}

// newExternal finds a free port that the server keeps over restarts.
func newExternal(t *testing.T) *external {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	e := &external{t: t, opts: server.Options{
		Host: "127.0.0.1", Port: l.Addr().(*net.TCPAddr).Port, NoSigs: true, NoLog: true,
		JetStream: true, StoreDir: t.TempDir(), JetStreamMaxStore: 1 << 40, JetStreamMaxMemory: 1 << 30,
	}}
	t.Cleanup(func() { e.stop() })
	return e
}

func (e *external) start() {
	e.t.Helper()
	opts := e.opts
	ns, err := server.NewServer(&opts)
	if err != nil {
		e.t.Fatal(err)
	}
	ns.Start()
	e.ns = ns
	if !ns.ReadyForConnections(patience) {
		e.t.Fatal("the external server does not start")
	}
}

func (e *external) stop() {
	if e.ns != nil {
		e.ns.Shutdown()
		e.ns.WaitForShutdown()
	}
}

func (e *external) address() string { return fmt.Sprintf("127.0.0.1:%d", e.opts.Port) }

func (e *external) connect(log *logLines, address string) *nats.Conn {
	e.t.Helper()
	nc, err := bus.Connect(e.t.Context(), bus.ConnectConfig{URL: "nats://" + address, Log: log.logger()})
	if err != nil {
		e.t.Fatal(err)
	}
	e.t.Cleanup(nc.Close)
	return nc
}

func (e *external) journal(nc *nats.Conn, log *logLines) *bus.Journal {
	e.t.Helper()
	if err := bus.ProvisionJournal(e.t.Context(), nc, bus.StreamConfig{}); err != nil {
		e.t.Fatal(err)
	}
	return openJournal(e.t, nc, bus.JournalConfig{Timeout: 200 * time.Millisecond, Log: log.logger()})
}

func commits(t *testing.T, j *bus.Journal) []string {
	t.Helper()
	var all []string
	if err := j.Replay(t.Context(), 0, func(_ uint64, c []byte) error { all = append(all, string(c)); return nil }); err != nil {
		t.Fatal(err)
	}
	return all
}

func TestConnectWaits(t *testing.T) {
	t.Parallel()
	e := newExternal(t)
	var log logLines
	connected := make(chan error, 1)
	go func() {
		nc, err := bus.Connect(t.Context(), bus.ConnectConfig{URL: "nats://" + e.address(), Log: log.logger()})
		if err == nil {
			nc.Close()
		}
		connected <- err
	}()
	eventually(t, "the wait is logged", func() bool { return log.count("waiting to connect") == 1 })
	e.start()
	if err := <-connected; err != nil {
		t.Fatal(err)
	}
	if log.count("waiting to connect") != 1 || log.count("could connect to NATS again") != 1 {
		t.Error("the log does not have one line for each state")
	}
}

func TestConnectEndsWithContext(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	_, err := bus.Connect(ctx, bus.ConnectConfig{URL: "nats://" + newExternal(t).address()})
	if !errors.Is(err, context.DeadlineExceeded) || !errors.Is(err, nats.ErrNoServers) {
		t.Errorf("Connect = %v, want the context's end and why it waited", err)
	}
}

func TestConnectRefusedAtOnce(t *testing.T) {
	t.Parallel()
	e := newExternal(t)
	e.opts.Username, e.opts.Password = "a", "b"
	e.start()
	for name, cfg := range map[string]bus.ConnectConfig{
		"no credentials":      {URL: "nats://" + e.address()},
		"missing credentials": {URL: "nats://" + e.address(), Creds: "/nowhere/user.creds"},
		"bad address":         {URL: "nats://%zz"},
	} {
		if nc, err := bus.Connect(t.Context(), cfg); err == nil {
			nc.Close()
			t.Errorf("%s: Connect succeeded", name)
		}
	}
}

func TestAppendWaitsForServer(t *testing.T) {
	t.Parallel()
	e := newExternal(t)
	e.start()
	var log logLines
	j := e.journal(e.connect(&log, e.address()), &log)
	first, err := j.Append(t.Context(), 0, []byte("before"))
	if err != nil {
		t.Fatal(err)
	}
	e.stop()
	done := make(chan error, 1)
	go func() { _, err := j.Append(t.Context(), first, []byte("during")); done <- err }()
	eventually(t, "the wait is logged", func() bool { return log.count("waiting to append") > 0 })
	select {
	case err := <-done:
		t.Fatalf("Append returned without a server: %v", err)
	default:
	}
	e.start()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	if got := commits(t, j); !slices.Equal(got, []string{"before", "during"}) {
		t.Errorf("journal = %q", got)
	}
	if log.count("connected to NATS again") != 1 || log.count("could append to the journal again") != 1 {
		t.Error("the log does not tell that the server is back")
	}
}

func TestAppendEndsWithContext(t *testing.T) {
	t.Parallel()
	e := newExternal(t)
	e.start()
	var log logLines
	j := e.journal(e.connect(&log, e.address()), &log)
	e.stop()
	ctx, cancel := context.WithCancelCause(t.Context())
	done := make(chan error, 1)
	go func() { _, err := j.Append(ctx, 0, []byte("never")); done <- err }()
	eventually(t, "the wait is logged", func() bool { return log.count("waiting to append") > 0 })
	gone := errors.New("the lease is gone")
	cancel(gone)
	if err := <-done; !errors.Is(err, gone) {
		t.Errorf("Append = %v, want the cause of the context", err)
	}
}

func TestAppendOverRestarts(t *testing.T) {
	t.Parallel()
	e := newExternal(t)
	e.start()
	var log logLines
	j := e.journal(e.connect(&log, e.address()), &log)
	var appended atomic.Int64
	var want []string
	var writer sync.WaitGroup
	stop := make(chan struct{})
	writer.Go(func() {
		last := uint64(0)
		for i := 0; ; i++ {
			select {
			case <-stop:
				return
			default:
			}
			commit := fmt.Sprintf("commit %d", i)
			revision, err := j.Append(t.Context(), last, []byte(commit))
			if err != nil {
				t.Errorf("Append: %v", err)
				return
			}
			want, last = append(want, commit), revision
			appended.Add(1)
		}
	})
	for range 3 {
		before := appended.Load()
		eventually(t, "appends go on", func() bool { return appended.Load() > before+20 || t.Failed() })
		e.stop()
		e.start()
	}
	close(stop)
	writer.Wait()
	if got := commits(t, j); !slices.Equal(got, want) {
		t.Errorf("the journal holds %d commits, %d were acknowledged", len(got), len(want))
	}
}

// The server's answer gets lost on the way while the commit is stored.
func TestAppendLostAnswer(t *testing.T) {
	t.Parallel()
	e := newExternal(t)
	e.start()
	relay := newRelay(t, e.address())
	var log logLines
	direct := e.connect(&log, e.address())
	j := e.journal(e.connect(&log, relay.address()), &log)

	relay.mute.Store(true)
	done := make(chan uint64, 1)
	go func() {
		revision, err := j.Append(t.Context(), 0, []byte("once"))
		if err != nil {
			t.Error(err)
		}
		done <- revision
	}()
	eventually(t, "the journal notices", func() bool { return log.count("waiting to append") > 0 })
	if got := len(messages(t, direct, bus.StreamJournal)); got != 1 {
		t.Fatalf("the journal holds %d commits before the answer arrives, want 1", got)
	}
	relay.mute.Store(false)
	if revision := <-done; revision != 1 {
		t.Errorf("revision = %d, want 1", revision)
	}
	if got := commits(t, j); !slices.Equal(got, []string{"once"}) {
		t.Errorf("journal = %q", got)
	}
}

// relay passes a connection on and can lose what comes from the server.
type relay struct {
	listener net.Listener
	mute     atomic.Bool
}

func newRelay(t *testing.T, to string) *relay {
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

func (r *relay) address() string { return r.listener.Addr().String() }

func (r *relay) answer(client io.Writer, upstream io.Reader) {
	chunk := make([]byte, 64<<10)
	for {
		n, err := upstream.Read(chunk)
		if err != nil {
			return
		}
		if r.mute.Load() {
			continue
		}
		if _, err := client.Write(chunk[:n]); err != nil {
			return
		}
	}
}
