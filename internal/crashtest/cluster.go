package crashtest

import (
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// serverVariable is the environment variable with the path of the configuration of a
// NATS server, set for its process.
const serverVariable = "CRASHTEST_NATS_SERVER"

// ServeNATS turns a process that was started as a [Node] into a NATS server, until its
// standard input is closed or SIGTERM; in any other process it returns at once. The
// main function of a program that starts nodes calls it first.
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
	asked, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	go func() {
		io.Copy(io.Discard, os.Stdin)
		os.Exit(0) // the parent process has ended
	}()
	<-asked.Done()
	stop()
	ns.Shutdown()
	ns.WaitForShutdown()
	os.Exit(0)
}

// Node is a NATS server with JetStream in a separate process. Its restarts keep the
// address and the directory.
type Node struct {
	Name  string
	URL   string
	Store string // directory of its streams

	config  string // file
	rest    string // of the configuration, without the lines that depend on the name
	stores  string // directory of all stores
	process *Process
	input   io.Closer
}

// Renew makes a node that has ended a new member of the cluster: with another name and
// an empty store, on the old address.
func (n *Node) Renew(name string) error {
	if err := os.RemoveAll(n.Store); err != nil {
		return err
	}
	n.Name, n.Store = name, filepath.Join(n.stores, name)
	return n.configure()
}

func (n *Node) configure() error {
	return os.WriteFile(n.config, fmt.Appendf(nil, "server_name: %s\nstore_dir: %q\n%s", n.Name, n.Store, n.rest), 0o600)
}

// Start starts the node's process. The previous one must have ended.
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

// Stop shuts the node's process down gracefully.
func (n *Node) Stop(ctx context.Context) error {
	defer n.input.Close()
	return n.process.Stop(ctx)
}

// Process is the node's current process.
func (n *Node) Process() *Process { return n.process }

// Cluster is one NATS server, or several that hold copies of the streams.
type Cluster struct {
	Nodes []*Node
	Links *Links // between the nodes; nil when they reach each other directly
}

// ClusterConfig configures the servers of a cluster.
type ClusterConfig struct {
	Dir    string // of the configurations
	Stores string // directory of the streams
	Nodes  int
	Sync   string // "always" or a duration: sync_interval
	Links  bool   // the routes can be cut
}

// NewCluster starts servers with configurations in dir and streams below stores. sync
// is their sync_interval: "always" or a duration.
func NewCluster(ctx context.Context, dir, stores string, nodes int, sync string) (*Cluster, error) {
	return StartCluster(ctx, ClusterConfig{Dir: dir, Stores: stores, Nodes: nodes, Sync: sync})
}

// StartCluster starts servers.
func StartCluster(ctx context.Context, cfg ClusterConfig) (*Cluster, error) {
	c := &Cluster{}
	var routes []string
	for range cfg.Nodes {
		port, err := freePort()
		if err != nil {
			return nil, err
		}
		routes = append(routes, fmt.Sprintf("127.0.0.1:%d", port))
	}
	if cfg.Links {
		var err error
		if c.Links, err = newLinks(routes); err != nil {
			return nil, err
		}
	}
	for i := range cfg.Nodes {
		n, err := c.newNode(cfg, routes, i)
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
		output := c.Nodes[0].process.Output()
		c.Stop()
		return nil, fmt.Errorf("%w; output of the first server:\n%s", err, output)
	}
	return c, nil
}

// SystemUser is the name and password of a user of the system account, in clusters
// with links. All others need none.
const SystemUser = "system"

func (c *Cluster) newNode(cfg ClusterConfig, routes []string, own int) (*Node, error) {
	port, err := freePort()
	if err != nil {
		return nil, err
	}
	name := fmt.Sprint("node", own)
	n := &Node{
		Name: name, URL: fmt.Sprintf("nats://127.0.0.1:%d", port), Store: filepath.Join(cfg.Stores, name),
		stores: cfg.Stores, config: filepath.Join(cfg.Dir, name+".conf"),
	}
	n.rest = fmt.Sprintf("listen: 127.0.0.1:%d\nmax_payload: 8MB\n", port) +
		fmt.Sprintf("jetstream { sync_interval: %q, max_file_store: 64GB, max_memory_store: 256MB }\n", cfg.Sync)
	if c.Links != nil {
		n.rest += fmt.Sprintf("accounts { APP { jetstream: enabled, users: [ { user: app, password: app } ] }, SYS { users: [ { user: %[1]s, password: %[1]s } ] } }\n", SystemUser) +
			"system_account: SYS\nno_auth_user: app\n"
	}
	switch {
	case len(routes) == 1:
	case c.Links != nil:
		// Nobody listens at the advertised address, so that gossip cannot bypass the
		// links.
		n.rest += fmt.Sprintf("cluster { name: crashtest, listen: %q, advertise: \"127.0.0.1:1\", pool_size: -1, routes: [ nats://%s ] }\n",
			routes[own], strings.Join(c.Links.routes(own), ", nats://"))
	default:
		n.rest += fmt.Sprintf("cluster { name: crashtest, listen: %q, routes: [ nats://%s ] }\n", routes[own], strings.Join(routes, ", nats://"))
	}
	return n, n.configure()
}

// ready waits until the cluster can create streams.
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
	if c.Links != nil {
		c.Links.close()
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
