package serve

import (
	"context"
	"sync"
	"time"

	"github.com/flowhost/flowhost/bus/artifacts"
)

// lateStore opens a store when it is first needed: a bucket of an external server reserves
// its size there, which a host without artifacts has no use for.
type lateStore struct {
	open func(context.Context) (artifacts.Store, error)

	mu    sync.Mutex
	store artifacts.Store // nil before it is open
}

func (s *lateStore) opened(ctx context.Context) (artifacts.Store, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.store == nil {
		var err error
		if s.store, err = s.open(ctx); err != nil {
			s.store = nil
			return nil, err
		}
	}
	return s.store, nil
}

// Begin implements artifacts.Store.
func (s *lateStore) Begin(ctx context.Context) (artifacts.Writer, error) {
	store, err := s.opened(ctx)
	if err != nil {
		return nil, err
	}
	return store.Begin(ctx)
}

// Open implements artifacts.Store.
func (s *lateStore) Open(ctx context.Context, digest string) (artifacts.Reader, error) {
	store, err := s.opened(ctx)
	if err != nil {
		return nil, err
	}
	return store.Open(ctx, digest)
}

// Retain implements artifacts.Store.
func (s *lateStore) Retain(ctx context.Context, digests []string, now time.Time) error {
	store, err := s.opened(ctx)
	if err != nil {
		return err
	}
	return store.Retain(ctx, digests, now)
}

// Sweep implements artifacts.Store.
func (s *lateStore) Sweep(ctx context.Context, referenced func(digest string) (bool, error), now time.Time) error {
	store, err := s.opened(ctx)
	if err != nil {
		return err
	}
	return store.Sweep(ctx, referenced, now)
}
