package crashtest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
)

// Host serves a site: one process after the other on the same data directory.
type Host struct {
	Program Program
	Site    *Site
	Data    string   // data directory
	Args    []string // further ones of flowhost run
	Cluster *Cluster // the external servers; nil with the embedded one
}

// NewHost makes a host whose embedded server keeps one free port.
func NewHost(program Program, site *Site, data string, args ...string) (*Host, error) {
	port, err := freePort()
	if err != nil {
		return nil, err
	}
	args = append([]string{"--nats-listen", fmt.Sprintf("127.0.0.1:%d", port)}, args...)
	return &Host{Program: program, Site: site, Data: data, Args: args}, nil
}

// Start starts a process. The previous one must have ended.
func (h *Host) Start() (*Process, error) {
	return h.Program.Start(append([]string{"run", h.Site.Dir, "--data", h.Data}, h.Args...)...)
}

// Serves returns when the process reports that it serves the flows. It fails with
// *LossError when the process refuses to.
func (h *Host) Serves(ctx context.Context, p *Process) error {
	if err := p.Await(ctx, " serves "); err != nil {
		return withOutput(err, p)
	}
	return nil
}

// Connect connects with the credentials for other programs, as soon as it can.
func (h *Host) Connect(ctx context.Context) (*nats.Conn, error) {
	return h.connect(ctx, "nats-context.json")
}

// Operator connects as the user that may read the stream of events.
func (h *Host) Operator(ctx context.Context) (*nats.Conn, error) {
	return h.connect(ctx, "nats-operator-context.json")
}

func (h *Host) connect(ctx context.Context, file string) (*nats.Conn, error) {
	if h.Cluster != nil {
		return h.Cluster.Connect(ctx)
	}
	return try(ctx, func() (*nats.Conn, error) {
		text, err := os.ReadFile(filepath.Join(h.Data, file))
		if err != nil {
			return nil, err
		}
		var at struct {
			URL, User, Password string
			Inbox               string `json:"inbox_prefix"`
		}
		if err := json.Unmarshal(text, &at); err != nil {
			return nil, err
		}
		return nats.Connect(at.URL, nats.UserInfo(at.User, at.Password), nats.CustomInboxPrefix(at.Inbox), nats.NoReconnect())
	})
}

// inside connects to the engine's account after the process has ended, with a server
// of the test that reads the data directory.
func (h *Host) inside(ctx context.Context, read func(*nats.Conn) error) error {
	if h.Cluster != nil {
		nc, err := h.Cluster.Connect(ctx)
		if err != nil {
			return err
		}
		defer nc.Close()
		return read(nc)
	}
	opts := &server.Options{DontListen: true, NoSigs: true, NoLog: true, JetStream: true, JetStreamMaxStore: 1 << 40, StoreDir: h.Data}
	if err := opts.ProcessConfigString(`accounts { ENGINE { jetstream: enabled, users: [{ user: "reader", password: "reader" }] } }`); err != nil {
		return err
	}
	s, err := server.NewServer(opts)
	if err != nil {
		return err
	}
	s.Start()
	defer s.WaitForShutdown()
	defer s.Shutdown()
	if !s.ReadyForConnections(time.Minute) {
		return errors.New("the server that reads the data directory does not start")
	}
	nc, err := nats.Connect("", nats.InProcessServer(s), nats.UserInfo("reader", "reader"))
	if err != nil {
		return err
	}
	defer nc.Close()
	return read(nc)
}

// try repeats f until it succeeds, or ctx ends.
func try[T any](ctx context.Context, f func() (T, error)) (T, error) {
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for {
		v, err := f()
		if err == nil {
			return v, nil
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return v, fmt.Errorf("%w: %w", context.Cause(ctx), err)
		}
	}
}

// directories are those with the messages of a stream.
func (h *Host) directories(stream string) []string {
	stores := []string{h.Data}
	if h.Cluster != nil {
		stores = nil
		for _, n := range h.Cluster.Nodes {
			stores = append(stores, n.Store)
		}
	}
	for i := range stores {
		stores[i] = filepath.Join(stores[i], "jetstream", "*", "streams", stream, "msgs")
	}
	return stores
}
