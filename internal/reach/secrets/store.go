package secrets

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"time"

	"golang.org/x/sync/singleflight"

	"github.com/flowhost/flowhost/run/access"
)

// Bounds of lookups.
const (
	valueAge   = time.Minute      // how long a value is used after it was read
	failureAge = 5 * time.Second  // how long a failure is
	longest    = 10 * time.Second // a lookup takes at most
	maxValue   = 64 << 10         // bytes of a value
	maxCached  = 10_000           // values and failures
	maxWarned  = 1000             // files that the log has a warning of
)

// Store resolves secrets. It implements [access.Secrets] and is safe for concurrent use.
type Store struct {
	config Config
	vault  *vault

	flights singleflight.Group
	lookups sync.WaitGroup

	mu         sync.Mutex
	cached     map[source]result
	generation int                           // of the cache: a lookup for an older one is not kept
	cancels    map[string]context.CancelFunc // of lookups under way, by key
	cleanup    *time.Timer                   // nil: no value is cached
	warned     map[string]bool               // about the permissions of a file
	closed     bool
}

var _ access.Secrets = (*Store)(nil)

// result is what a lookup found: a value, or why there is none.
type result struct {
	value   string
	failure *failure
	until   time.Time // when it is looked up again
}

// New returns a Store. It reads nothing yet.
func New(config Config) *Store {
	if config.Env == nil {
		config.Env = os.LookupEnv
	}
	if config.Seen == nil {
		config.Seen = func(...string) {}
	}
	if config.Allow == nil {
		config.Allow = func(string) *access.Allow { return nil }
	}
	config.Log = cmp.Or(config.Log, slog.New(slog.DiscardHandler))
	s := &Store{
		config:  config,
		cached:  map[source]result{},
		cancels: map[string]context.CancelFunc{},
		warned:  map[string]bool{},
	}
	s.vault = newVault(s)
	return s
}

// Resolve returns the value of a secret as a flow sees it. It fails with an [*access.Fault].
func (s *Store) Resolve(ctx context.Context, flow, name string) (string, error) {
	found, err := s.resolve(ctx, flow, name, false)
	if err != nil {
		return "", err
	}
	if found.failure != nil {
		return "", found.failure.fault(name)
	}
	return found.value, nil
}

// Check reports why a secret cannot be resolved now, for the operator: the error is an
// [*access.Fault] that names paths and addresses. It does not use what is cached.
func (s *Store) Check(ctx context.Context, flow, name string) error {
	found, err := s.resolve(ctx, flow, name, true)
	switch fault := (*access.Fault)(nil); {
	case errors.As(err, &fault):
		return fault.Full()
	case found.failure == nil:
		return nil
	}
	return found.failure.fault(name).Full()
}

// Invalidate drops all values: each is looked up again when it is needed. Lookups under way
// end, and only who waits for them gets their values.
func (s *Store) Invalidate() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.drop()
}

// Close drops all values, cancels the lookups under way and waits for them. Nothing is
// resolved afterwards.
func (s *Store) Close() {
	s.mu.Lock()
	s.closed = true
	s.drop()
	for _, cancel := range s.cancels {
		cancel()
	}
	s.mu.Unlock()
	s.lookups.Wait()
	s.vault.close()
}

// drop empties the cache. The lock is held.
func (s *Store) drop() {
	clear(s.cached)
	s.generation++
	if s.cleanup != nil {
		s.cleanup.Stop()
		s.cleanup = nil
	}
}

// resolve looks a secret up, in the cache unless it has to be fresh. The error is a fault.
func (s *Store) resolve(ctx context.Context, flow, name string, fresh bool) (result, error) {
	declared := s.config.Deployed.Secret(flow, name)
	if declared == nil {
		return result{}, &access.Fault{
			Code:      access.CodeDenied,
			Message:   fmt.Sprintf("secret %q is not declared for flow %q: declare it in a flow file of the directory or in the host's settings", name, flow),
			Target:    name,
			Rule:      "not declared",
			Add:       fmt.Sprintf("secret %q { env = \"NAME\" }", name),
			Retryable: true, // the next deployment may declare it
		}
	}
	allow := s.config.Allow(flow)
	if x := allow.SourceExcess(declared); x != nil {
		return result{}, allow.SourceFault(flow, name, x)
	}
	from := sourceOf(declared, allow)
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return result{}, stopped(name)
	}
	if found, ok := s.current(from); ok && !fresh {
		s.mu.Unlock()
		return found, nil
	}
	generation := s.generation
	found := make(chan result, 1)
	s.lookups.Go(func() { found <- s.share(ctx, from, name, generation, fresh) })
	s.mu.Unlock()

	select {
	case r := <-found:
		return r, nil
	case <-ctx.Done():
		return result{}, ended(ctx, name)
	}
}

// current is what is cached and not too old. The lock is held.
func (s *Store) current(from source) (result, bool) {
	found, ok := s.cached[from]
	return found, ok && time.Now().Before(found.until)
}

// share looks a source up together with whoever else needs it. The lookup does not end with
// the context of the one that came first.
func (s *Store) share(ctx context.Context, from source, name string, generation int, fresh bool) result {
	key := fmt.Sprintf("%d %t %+q", generation, fresh, from)
	found, _, _ := s.flights.Do(key, func() (any, error) {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), longest)
		defer cancel()
		s.mu.Lock()
		if found, ok := s.current(from); ok && !fresh { // another lookup has just ended
			s.mu.Unlock()
			return found, nil
		}
		if s.closed {
			cancel()
		}
		s.cancels[key] = cancel
		s.mu.Unlock()

		r := s.look(ctx, from)
		if r.failure != nil {
			s.config.Log.Warn("secret cannot be read", "secret", name, "reason", r.failure.text, "cause", r.failure.cause)
		}

		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.cancels, key)
		s.keep(from, r, generation)
		return r, nil
	})
	return found.(result)
}

// look reads a source.
func (s *Store) look(ctx context.Context, from source) result {
	value, failed := s.read(ctx, from)
	switch {
	case failed != nil:
	case value == "":
		failed = &failure{text: "the value is empty: an empty credential is never used", cause: from.place(), retryable: true}
	case len(value) > maxValue:
		failed = &failure{text: fmt.Sprintf("the value is longer than %d bytes", maxValue), cause: from.place()}
	}
	if failed != nil {
		return result{failure: failed, until: time.Now().Add(failureAge)}
	}
	s.config.Seen(value)
	return result{value: value, until: time.Now().Add(valueAge)}
}

// keep caches a result, unless the cache was emptied meanwhile. The lock is held.
func (s *Store) keep(from source, r result, generation int) {
	if s.closed || generation != s.generation || len(s.cached) >= maxCached {
		return
	}
	s.cached[from] = r
	if s.cleanup == nil {
		s.cleanup = time.AfterFunc(time.Until(r.until), s.clean)
	}
}

// clean removes what is too old, and comes again when the next is.
func (s *Store) clean() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.cleanup == nil {
		return // the cache was emptied meanwhile
	}
	now := time.Now()
	var next time.Time
	for from, r := range s.cached {
		switch {
		case !now.Before(r.until):
			delete(s.cached, from)
		case next.IsZero() || r.until.Before(next):
			next = r.until
		}
	}
	if next.IsZero() {
		s.cleanup = nil
		return
	}
	s.cleanup.Reset(next.Sub(now))
}

// warnOnce logs that all users of the machine may read a file.
func (s *Store) warnOnce(path string) {
	s.mu.Lock()
	first := !s.warned[path] && len(s.warned) < maxWarned
	if first {
		s.warned[path] = true
	}
	s.mu.Unlock()
	if first {
		s.config.Log.Warn("all users of this machine may read a file with a secret: remove the permission, chmod o-r", "file", path)
	}
}
