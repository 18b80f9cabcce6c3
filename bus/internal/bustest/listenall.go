package bustest

import (
	"sync"
	"testing"

	"github.com/nats-io/nats.go"

	"github.com/flowhost/flowhost/bus/natsd"
)

// ListenAll subscribes to everything in the accounts of the engine and of the operator: what
// clients receive comes from there. The function returns the subjects of all messages since
// its last call, with those that a connection has not sent yet.
func ListenAll(t testing.TB, s *natsd.Server) func(from *nats.Conn) []string {
	t.Helper()
	const barrier = "barrier.of.listenall"
	var mu sync.Mutex
	var seen []string
	arrived := make(chan struct{}, 1)
	var conns []*nats.Conn
	for _, connect := range []func() (*nats.Conn, error){s.ConnectEngine, s.ConnectApp} {
		nc, err := connect()
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(nc.Close)
		_, err = nc.Subscribe(">", func(m *nats.Msg) {
			if m.Subject == barrier {
				arrived <- struct{}{}
				return
			}
			mu.Lock()
			defer mu.Unlock()
			seen = append(seen, m.Subject)
		})
		if err != nil {
			t.Fatal(err)
		}
		if err := nc.Flush(); err != nil {
			t.Fatal(err)
		}
		conns = append(conns, nc)
	}
	return func(from *nats.Conn) []string {
		t.Helper()
		if err := from.Flush(); err != nil {
			t.Fatal(err)
		}
		for _, nc := range conns {
			if err := nc.Publish(barrier, nil); err != nil {
				t.Fatal(err)
			}
			<-arrived
		}
		mu.Lock()
		defer mu.Unlock()
		got := seen
		seen = nil
		return got
	}
}
