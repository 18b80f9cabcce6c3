package torture

import (
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// serverVariable names the configuration of a NATS server in the environment of
// a process of it.
const serverVariable = "TORTURE_NATS_SERVER"

// ServeNATS makes this process a NATS server, for as long as its standard input
// is open, when it was started as a [Node]; otherwise it returns at once. A
// program whose own file is used for nodes calls it first.
func ServeNATS() {
	file := os.Getenv(serverVariable)
	if file == "" {
		return
	}
	opts, err := server.ProcessConfigFile(file)
	var ns *server.Server
	if err == nil {
		opts.NoSigs = true
		ns, err = server.NewServer(opts)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	ns.ConfigureLogger()
	ns.Start()
	io.Copy(io.Discard, os.Stdin) // whoever started it has ended
	os.Exit(0)
}

// Node is a NATS server with JetStream in a process of its own, on an address
// and a folder that it keeps.
type Node struct {
	Name  string
	URL   string
	Store string // folder of its streams

	config  string // file
	process *Process
	input   io.Closer
}

// Start starts the node's process. The one before has ended.
func (n *Node) Start() error {
	program, err := os.Executable()
	if err != nil {
		return err
	}
	cmd := exec.Command(program)
	cmd.Env = append(os.Environ(), serverVariable+"="+n.config)
	if n.input, err = cmd.StdinPipe(); err != nil {
		return err
	}
	n.process, err = start(cmd, nil)
	return err
}

// Kill ends the node's process at once.
func (n *Node) Kill() {
	n.process.Kill()
	n.input.Close()
}

// Process is the node's present process.
func (n *Node) Process() *Process { return n.process }

// Cluster is one NATS server, or several that hold copies of the streams.
type Cluster struct {
	Nodes []*Node
}

// NewCluster starts servers with configurations in the folder dir and streams
// below the folder stores. They sync as sync_interval says: "always" or a
// duration.
func NewCluster(ctx context.Context, dir, stores string, nodes int, sync string) (*Cluster, error) {
	c := &Cluster{}
	var routes []string
	for range nodes {
		port, err := freePort()
		if err != nil {
			return nil, err
		}
		routes = append(routes, fmt.Sprintf("127.0.0.1:%d", port))
	}
	for i := range nodes {
		n, err := newNode(dir, stores, fmt.Sprint("node", i), sync, routes, i)
		if err == nil {
			err = n.Start()
		}
		if err != nil {
			c.Stop()
			return nil, err
		}
		c.Nodes = append(c.Nodes, n)
	}
	if err := c.ready(ctx); err != nil {
		said := c.Nodes[0].process.Output()
		c.Stop()
		return nil, fmt.Errorf("%w; the first server said:\n%s", err, said)
	}
	return c, nil
}

func newNode(dir, stores, name, sync string, routes []string, own int) (*Node, error) {
	port, err := freePort()
	if err != nil {
		return nil, err
	}
	n := &Node{Name: name, URL: fmt.Sprintf("nats://127.0.0.1:%d", port), Store: filepath.Join(stores, name), config: filepath.Join(dir, name+".conf")}
	text := fmt.Sprintf("server_name: %s\nlisten: 127.0.0.1:%d\nmax_payload: 8MB\n", name, port) +
		fmt.Sprintf("jetstream { store_dir: %q, sync_interval: %q, max_file_store: 64GB, max_memory_store: 256MB }\n", n.Store, sync)
	if len(routes) > 1 {
		text += fmt.Sprintf("cluster { name: torture, listen: %q, routes: [ nats://%s ] }\n", routes[own], strings.Join(routes, ", nats://"))
	}
	return n, os.WriteFile(n.config, []byte(text), 0o600)
}

// ready waits until streams can be made.
func (c *Cluster) ready(ctx context.Context) error {
	nc, err := c.Connect(ctx)
	if err != nil {
		return err
	}
	defer nc.Close()
	js, err := jetstream.New(nc)
	if err != nil {
		return err
	}
	_, err = try(ctx, func() (*jetstream.AccountInfo, error) {
		ctx, cancel := context.WithTimeout(ctx, time.Second)
		defer cancel()
		return js.AccountInfo(ctx)
	})
	return err
}

// Stop ends all processes.
func (c *Cluster) Stop() {
	for _, n := range c.Nodes {
		n.Kill()
	}
}

// URL lists the addresses of all nodes.
func (c *Cluster) URL() string {
	var all []string
	for _, n := range c.Nodes {
		all = append(all, n.URL)
	}
	return strings.Join(all, ",")
}

// Connect connects to any node, and again to another one when it ends.
func (c *Cluster) Connect(ctx context.Context) (*nats.Conn, error) {
	return try(ctx, func() (*nats.Conn, error) {
		return nats.Connect(c.URL(), nats.MaxReconnects(-1), nats.ReconnectWait(10*time.Millisecond), nats.ReconnectJitter(0, 0))
	})
}

// Leader is the node that leads a stream.
func (c *Cluster) Leader(ctx context.Context, stream string) (*Node, error) {
	nc, err := c.Connect(ctx)
	if err != nil {
		return nil, err
	}
	defer nc.Close()
	js, err := jetstream.New(nc)
	if err != nil {
		return nil, err
	}
	s, err := js.Stream(ctx, stream)
	if err != nil {
		return nil, err
	}
	if info := s.CachedInfo(); info.Cluster != nil {
		for _, n := range c.Nodes {
			if n.Name == info.Cluster.Leader {
				return n, nil
			}
		}
	}
	return nil, fmt.Errorf("stream %s has no leader", stream)
}

// freePort finds a port on the loopback interface that nobody uses.
func freePort() (int, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port, nil
}
