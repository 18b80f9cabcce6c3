package kv

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/flowhost/flowhost/bus/internal/jskit"
	"github.com/flowhost/flowhost/bus/internal/ops"
)

// Bounds and defaults of buckets.
const (
	DefaultBucketBytes = 1 << 30
	minBucketBytes     = 1 << 20
	maxKnown           = 1024 // buckets that are remembered
)

// markerAge is how long a bucket remembers that a key was deleted or has expired: others
// that follow the bucket learn of it.
const markerAge = time.Hour

// Config configures a [Store].
type Config struct {
	Conn *nats.Conn // of the account that holds the buckets; stays the caller's

	// BucketBytes is the size of each bucket. 0: an existing one stays as it is, and a new
	// one gets DefaultBucketBytes, or less where the server has no room to reserve that.
	BucketBytes int64

	Replicas int           // of new buckets; default 1
	Timeout  time.Duration // of one request to the server; default 5s
	Log      *slog.Logger  // default: none
}

// Store is the buckets of one account. Its methods are safe for concurrent use.
type Store struct {
	cfg Config
	js  jetstream.JetStream

	mu    sync.Mutex
	known map[string]*bucket // by the guests' name
}

// bucket is a bucket that exists.
type bucket struct {
	name   string
	stream jetstream.Stream
	ttl    bool // keys may expire
}

// New returns the buckets of a connection's account.
func New(cfg Config) (*Store, error) {
	if cfg.Timeout <= 0 {
		cfg.Timeout = 5 * time.Second
	}
	cfg.Replicas = max(cfg.Replicas, 1)
	cfg.Log = jskit.Logger(cfg.Log)
	js, err := jetstream.New(cfg.Conn)
	if err != nil {
		return nil, fmt.Errorf("key-value buckets: %w", err)
	}
	return &Store{cfg: cfg, js: js, known: map[string]*bucket{}}, nil
}

// natsName is the name under which the NATS tools know a bucket.
func natsName(name string) string { return "FH_KV_" + name }

func (b *bucket) subject(key string) string { return "$KV." + natsName(b.name) + "." + key }

func (s *Store) timed(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, s.cfg.Timeout)
}

// open finds a bucket. It fails with jetstream.ErrStreamNotFound.
func (s *Store) open(ctx context.Context, name string) (*bucket, error) {
	if b := s.remembered(name); b != nil {
		return b, nil
	}
	timed, cancel := s.timed(ctx)
	defer cancel()
	stream, err := s.js.Stream(timed, "KV_"+natsName(name))
	if err != nil {
		return nil, err
	}
	if err := s.resize(timed, name, stream); err != nil {
		return nil, err
	}
	return s.remember(name, stream), nil
}

// openOrCreate finds a bucket, or makes it.
func (s *Store) openOrCreate(ctx context.Context, name string) (*bucket, error) {
	b, err := s.open(ctx, name)
	if !errors.Is(err, jetstream.ErrStreamNotFound) {
		return b, err
	}
	if err := s.create(ctx, name); err != nil {
		return nil, err
	}
	return s.open(ctx, name)
}

// create makes a bucket. The server reserves its size, so that without a setting it has what
// fits.
func (s *Store) create(ctx context.Context, name string) error {
	cfg := jetstream.KeyValueConfig{
		Bucket: natsName(name), Description: "what tasks store by their grant kv",
		History: 1, MaxValueSize: ops.MaxBody + jskit.Overhead, // of a message with its headers
		Replicas: s.cfg.Replicas, Storage: jetstream.FileStorage, LimitMarkerTTL: markerAge,
	}
	create := func(bytes int64) error {
		cfg.MaxBytes = bytes
		err := s.createAs(ctx, cfg)
		if errors.Is(err, jetstream.ErrLimitMarkerTTLNotSupported) {
			cfg.LimitMarkerTTL = 0
			err = s.createAs(ctx, cfg)
		}
		return err
	}
	resize := func(bytes int64) error {
		cfg.MaxBytes = bytes
		return s.request(ctx, func(ctx context.Context) error {
			_, err := s.js.UpdateKeyValue(ctx, cfg)
			return err
		})
	}
	var err error
	if s.cfg.BucketBytes > 0 {
		err = create(s.cfg.BucketBytes)
	} else {
		err = jskit.Fit(DefaultBucketBytes, minBucketBytes, create, resize)
	}
	if errors.Is(err, jetstream.ErrBucketExists) { // another flow was first
		return nil
	}
	return err
}

func (s *Store) createAs(ctx context.Context, cfg jetstream.KeyValueConfig) error {
	return s.request(ctx, func(ctx context.Context) error {
		_, err := s.js.CreateKeyValue(ctx, cfg)
		return err
	})
}

// request bounds one request to the server.
func (s *Store) request(ctx context.Context, do func(context.Context) error) error {
	ctx, cancel := s.timed(ctx)
	defer cancel()
	return do(ctx)
}

// resize gives an existing bucket the size of the settings, unless it holds more.
func (s *Store) resize(ctx context.Context, name string, stream jetstream.Stream) error {
	info := stream.CachedInfo()
	if s.cfg.BucketBytes <= 0 || info.Config.MaxBytes == s.cfg.BucketBytes {
		return nil
	}
	if info.State.Bytes > uint64(s.cfg.BucketBytes) {
		s.cfg.Log.Warn("a bucket keeps its size, since it holds more than the settings give it",
			"bucket", natsName(name), "bytes", info.State.Bytes, "setting", s.cfg.BucketBytes)
		return nil
	}
	next := info.Config
	next.MaxBytes = s.cfg.BucketBytes
	_, err := s.js.UpdateStream(ctx, next)
	return err
}

func (s *Store) remembered(name string) *bucket {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.known[name]
}

func (s *Store) remember(name string, stream jetstream.Stream) *bucket {
	b := &bucket{name: name, stream: stream, ttl: stream.CachedInfo().Config.AllowMsgTTL}
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.known) >= maxKnown {
		clear(s.known)
	}
	s.known[name] = b
	return b
}

// forget has the next operation ask the server for the bucket.
func (s *Store) forget(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.known, name)
}

// gone reports whether an error is that of a bucket which was removed meanwhile: nobody
// listens to its subjects any more.
func gone(err error) bool {
	return errors.Is(err, nats.ErrNoResponders) || errors.Is(err, jetstream.ErrNoStreamResponse) ||
		errors.Is(err, jetstream.ErrStreamNotFound) || errors.Is(err, jetstream.ErrBucketNotFound)
}
