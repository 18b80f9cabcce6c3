package natsd

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nkeys"

	"github.com/flowhost/flowhost/bus"
	"github.com/flowhost/flowhost/bus/api"
	"github.com/flowhost/flowhost/bus/internal/creds"
	"github.com/flowhost/flowhost/bus/internal/jskit"
)

// DefaultListen is where an embedded server listens when nothing else is asked
// for: the port at which NATS clients look first.
const DefaultListen = "127.0.0.1:4222"

// Limits of the embedded server. They are set because the server's own defaults
// follow the disk and the memory that happen to be free.
const (
	DefaultMaxStore = 16 << 30  // bytes of all streams on disk
	maxMemory       = 256 << 20 // bytes of all streams and consumers in memory

	// maxPending is what the server keeps for a connection that does not read, in
	// bytes: far more than can be under way to the engine, whose connections it holds for.
	// Those of others are watched, see closeBacklogs.
	maxPending       = 512 << 20
	writeDeadline    = 5 * time.Second // for a connection to take what is written
	authTimeout      = 2 * time.Second // for a connection to authenticate
	maxConnections   = 4 << 10         // with those that have not authenticated yet, which cost some KiB
	filesShare       = 4               // of the files that the process may open, one of so many for connections
	maxBuffered      = 32 << 20        // bytes of messages that wait to be stored in a stream; others are refused
	maxSubscriptions = 1 << 20         // of one connection: the engine has one for each subject that runs wait for
	maxControlLine   = 4 << 10

	syncRelaxed  = 100 * time.Millisecond
	syncMemory   = time.Hour
	startTimeout = 30 * time.Second
)

// Sync is when a stored message is safe from a power loss. A message that was
// acknowledged survives a crash of the process in either mode.
type Sync string

// Modes of [Sync].
const (
	SyncStrict  Sync = "strict"  // before it is acknowledged
	SyncRelaxed Sync = "relaxed" // within 100 ms
	SyncMemory  Sync = "memory"  // not at all: streams are in a temporary directory that the server removes
)

// Config configures an embedded server. Only Dir is required.
type Config struct {
	Dir            string       // data directory, see [ClaimDataDir]
	Listen         string       // loopback "host:port" that [CheckListen] accepts, port 0 for a free one; default DefaultListen, or a free port when that one is taken
	NoListen       bool         // only this process can connect
	ClientSubjects []string     // subjects beside fh.v1.trigger.* and fh.v1.api.> on which the client user may publish
	Sync           Sync         // default SyncStrict
	Version        string       // of the program, noted in a new data directory
	MaxStore       int64        // bytes of all streams on disk; default DefaultMaxStore
	Log            *slog.Logger // default: none
}

// streamsDir is the directory that the server makes for streams.
const streamsDir = "jetstream"

// Server is a NATS server in this process, the only one on its data directory.
// Its methods are safe for concurrent use.
type Server struct {
	cfg   Config
	keys  engineKeys
	users logins // set by launch
	log   *slog.Logger
	lock  *os.File
	fsync time.Duration

	temporary string // directory of the streams that the server removes; empty when they stay

	work sync.Mutex // held while the NATS server is started or stopped

	options *server.Options // of the current NATS server; guarded by work

	mu      sync.Mutex
	nats    *server.Server // guarded by mu; replaced by Restart
	address string         // guarded by mu; where it listens
	conns   []*nats.Conn   // guarded by mu; given out, closed by Shutdown
	closed  bool           // guarded by mu; for good

	watch    context.CancelFunc // ends watching
	watching sync.WaitGroup

	stop    sync.Once
	stopped chan struct{} // closed when the server is down and the lock is free
}

// Start starts a server and returns when it can be used. ctx bounds the
// start only. A *LockedError reports that another process has the directory, a
// *FormatError that another version of the program wrote it.
func Start(ctx context.Context, cfg Config) (*Server, error) {
	log := jskit.Logger(cfg.Log)
	if err := ClaimDataDir(cfg.Dir, cfg.Version, log); err != nil {
		return nil, err
	}
	reportSharing(cfg.Dir, log)
	lock, err := lockDir(cfg.Dir)
	if err != nil {
		return nil, err
	}
	s := &Server{cfg: cfg, log: log, lock: lock, stopped: make(chan struct{})}
	if err := s.prepare(); err != nil {
		lock.Close()
		return nil, err
	}
	if err := s.start(ctx); err != nil {
		s.removeTemporary()
		lock.Close()
		return nil, fmt.Errorf("embedded NATS server: %w", err)
	}
	watched, end := context.WithCancel(context.WithoutCancel(ctx))
	s.watch = end
	s.watching.Go(func() { s.watchBacklogs(watched) })
	return s, nil
}

// prepare looks at the data directory before the server does.
func (s *Server) prepare() error {
	if s.cfg.Sync == SyncMemory {
		var err error
		s.temporary, err = os.MkdirTemp("", "flowhost-")
		return err
	}
	if err := mendStreams(s.cfg.Dir, s.cfg.Sync == SyncRelaxed, s.log); err != nil {
		return err
	}
	var err error
	s.fsync, err = measureFsync(s.cfg.Dir)
	return err
}

// Dir is the directory of the streams.
func (s *Server) Dir() string {
	if s.temporary != "" {
		return s.temporary
	}
	return s.cfg.Dir
}

func (s *Server) removeTemporary() {
	if s.temporary == "" {
		return
	}
	if err := os.RemoveAll(s.temporary); err != nil {
		s.log.Warn("a temporary directory is left behind", "error", err)
	}
}

func (s *Server) start(ctx context.Context) error {
	var err error
	if s.keys, err = newEngineKeys(); err != nil {
		return err
	}
	return s.launch(ctx, s.cfg)
}

// launch starts a NATS server and makes it the current one.
func (s *Server) launch(ctx context.Context, cfg Config) error {
	opts, err := serverOptions(cfg, s.log)
	if err != nil {
		return err
	}
	opts.StoreDir = s.Dir()
	client, operator, err := s.loadUsers(cfg)
	if err == nil {
		err = setAccounts(opts, s.users, grantable(cfg.ClientSubjects, s.log))
	}
	if err != nil {
		return err
	}
	ns, err := s.run(ctx, opts)
	s.options = opts
	if err != nil || cfg.NoListen {
		return err
	}
	client.URL, operator.URL = s.URL(), s.URL()
	err = errors.Join(
		storeContext(filepath.Join(cfg.Dir, ClientContext), client),
		storeContext(filepath.Join(cfg.Dir, OperatorContext), operator))
	if err != nil {
		ns.Shutdown()
	}
	return err
}

func serverOptions(cfg Config, log *slog.Logger) (*server.Options, error) {
	opts := &server.Options{
		ServerName: "flowhost", NoSigs: true, DisableJetStreamBanner: true,
		MaxPayload:        jskit.MaxPayload,
		MaxPending:        maxPending,
		MaxConn:           min(maxConnections, maxFiles()/filesShare),
		AuthTimeout:       authTimeout.Seconds(),
		MaxSubs:           maxSubscriptions,
		MaxControlLine:    maxControlLine,
		WriteDeadline:     writeDeadline,
		JetStream:         true,
		JetStreamMaxStore: cfg.MaxStore, JetStreamMaxMemory: maxMemory, StreamMaxBufferedSize: maxBuffered,
		DontListen: cfg.NoListen,
	}
	if opts.JetStreamMaxStore <= 0 {
		opts.JetStreamMaxStore = DefaultMaxStore
	}
	switch cfg.Sync {
	case "", SyncStrict:
		opts.SyncAlways = true
	case SyncMemory:
		opts.SyncInterval = syncMemory
	case SyncRelaxed:
		opts.SyncInterval = syncRelaxed
	default:
		return nil, fmt.Errorf("sync mode %q is unknown: use %q, %q or %q", cfg.Sync, SyncStrict, SyncRelaxed, SyncMemory)
	}
	if cfg.NoListen {
		return opts, nil
	}
	var err error
	opts.Host, opts.Port, err = listenAddress(cfg.Listen, log)
	return opts, err
}

// CheckListen refuses an address that a server could never listen at.
func CheckListen(listen string) error {
	_, _, err := splitListen(listen)
	return err
}

// splitListen splits a loopback address.
func splitListen(listen string) (host string, port int, err error) {
	host, text, err := net.SplitHostPort(listen)
	if err != nil {
		return "", 0, fmt.Errorf("listen address %q: a host and a port are expected, such as %s, or port 0 for a free one", listen, DefaultListen)
	}
	if ip := net.ParseIP(host); host != "localhost" && (ip == nil || !ip.IsLoopback()) {
		return "", 0, fmt.Errorf("listen address %q is not on the loopback interface: the embedded server has no TLS; run an external NATS server to be reached from other machines", listen)
	}
	port, err = strconv.Atoi(text)
	if err != nil || port < 0 || port > 65535 {
		return "", 0, fmt.Errorf("listen address %q: %q is not a port from 0 to 65535", listen, text)
	}
	return host, port, nil
}

// listenAddress splits an address, port -1 meaning a free one.
func listenAddress(listen string, log *slog.Logger) (host string, port int, err error) {
	asked := listen != ""
	if !asked {
		listen = DefaultListen
	}
	if host, port, err = splitListen(listen); err != nil {
		return "", 0, err
	}
	if !asked && taken(listen) {
		log.Info("the usual NATS address is in use, a free port is taken instead", "address", listen)
		port = 0
	}
	if port == 0 {
		port = server.RANDOM_PORT
	}
	return host, port, nil
}

func taken(address string) bool {
	l, err := net.Listen("tcp", address)
	if err != nil {
		return true
	}
	l.Close()
	return false
}

// loadUsers finds the logins of the users: those with passwords only with a
// listener, without which nobody could use them.
func (s *Server) loadUsers(cfg Config) (client, operator creds.Context, err error) {
	s.users = logins{}
	if err := s.keys.addTo(s.users); err != nil || cfg.NoListen {
		return client, operator, err
	}
	if client, err = loadContext(filepath.Join(s.cfg.Dir, ClientContext), userClient, inboxClient, s.log); err != nil {
		return client, operator, err
	}
	if operator, err = loadContext(filepath.Join(s.cfg.Dir, OperatorContext), userOperator, inboxOperator, s.log); err != nil {
		return client, operator, err
	}
	s.users[userClient], s.users[userOperator] = login{password: client.Password}, login{password: operator.Password}
	return client, operator, nil
}

// run starts a NATS server. Its Start returns without an error whatever happens,
// so the log and its state show whether it succeeded.
func (s *Server) run(ctx context.Context, opts *server.Options) (*server.Server, error) {
	ns, err := server.NewServer(opts)
	if err != nil {
		return nil, err
	}
	lines := &serverLog{log: s.log.With("part", "nats-server")}
	ns.SetLoggerV2(lines, false, false, false)
	ns.Start()
	err = lines.err()
	if err == nil && !ns.ReadyForConnections(startTimeout) {
		err = fmt.Errorf("not ready after %s", startTimeout)
	}
	if err == nil {
		err = context.Cause(ctx)
	}
	if err != nil {
		ns.Shutdown()
		ns.WaitForShutdown()
		return nil, err
	}
	if n := lines.rebuilt(); n > 0 {
		s.log.Info("the last stop was not graceful: the server indexes streams again from their files", "streams", n)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.nats = ns
	if addr := ns.Addr(); addr != nil {
		s.address = addr.String()
	}
	return ns, nil
}

// URL is where other programs connect, empty without a listener.
func (s *Server) URL() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.address == "" {
		return ""
	}
	return "nats://" + s.address
}

// FsyncTime is how long a write of 4 KiB took to reach the disk when the server
// started: the median of some. A commit costs about as much in strict mode; above
// SlowFsync relaxed mode is worth a thought.
func (s *Server) FsyncTime() time.Duration { return s.fsync }

func (s *Server) current() *server.Server {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.nats
}

// InProcessConn connects to the NATS server of the moment, for connections that
// outlive one.
func (s *Server) InProcessConn() (net.Conn, error) { return s.current().InProcessConn() }

// ConnectEngine gives a connection from within the process to the account that only
// the engine enters. Shutdown closes it when the caller has not.
func (s *Server) ConnectEngine() (*nats.Conn, error) { return s.connect("flowhost", s.keys.engine) }

// ConnectApp gives a connection from within the process to the account of the
// operator, where flows listen and events are published. Shutdown closes it when the
// caller has not.
func (s *Server) ConnectApp() (*nats.Conn, error) { return s.connect("flowhost-app", s.keys.app) }

func (s *Server) connect(name string, key nkeys.KeyPair) (*nats.Conn, error) {
	public, err := key.PublicKey()
	if err != nil {
		return nil, fmt.Errorf("key of the engine: %w", err)
	}
	opts := append(bus.ConnectionOptions(s.log), nats.Name(name), nats.InProcessServer(s), nats.Nkey(public, key.Sign), nats.CustomInboxPrefix(bus.InboxEngine))
	s.work.Lock()
	defer s.work.Unlock()
	nc, err := nats.Connect("", opts...)
	if err != nil {
		return nil, fmt.Errorf("connecting to the embedded NATS server: %w", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.conns = append(s.conns, nc)
	return nc, nil
}

// Connected reports whether a requester's connection is still there.
func (s *Server) Connected(who api.Requester) bool {
	found, err := s.current().Connz(&server.ConnzOptions{CID: who.Client})
	return err != nil || len(found.Conns) > 0 && found.Conns[0].Start.Equal(who.Start)
}

// Sync flushes everything in the streams' directory to the disk. A stream that is not
// synced at each message - all of them in relaxed mode, FH_HISTORY always - would be
// lost by a power failure as a whole soon after it was made, not only its last
// messages: call Sync once after provisioning.
func (s *Server) Sync() error {
	if err := syncFile(s.Dir()); err != nil {
		return err
	}
	return filepath.WalkDir(filepath.Join(s.Dir(), streamsDir), func(path string, _ os.DirEntry, err error) error {
		if errors.Is(err, os.ErrNotExist) {
			return nil // the server removes files meanwhile
		}
		if err != nil {
			return err
		}
		return syncFile(path)
	})
}

// Shutdown closes the connections that the server gave out, stops it and waits
// until its files are closed and its directory is free for another process, or until
// ctx ends; it may be called again to wait on.
func (s *Server) Shutdown(ctx context.Context) error {
	s.stop.Do(func() { go s.shutdown() })
	select {
	case <-s.stopped:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("stopping the embedded NATS server: %w", context.Cause(ctx))
	}
}

func (s *Server) shutdown() {
	defer close(s.stopped)
	s.work.Lock()
	defer s.work.Unlock()
	s.mu.Lock()
	ns, conns := s.nats, s.conns
	s.closed = true
	s.mu.Unlock()
	s.watch()
	s.watching.Wait()
	for _, nc := range conns {
		nc.Close()
	}
	ns.Shutdown()
	ns.WaitForShutdown()
	s.removeTemporary()
	s.lock.Close()
}
