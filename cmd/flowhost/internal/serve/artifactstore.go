package serve

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/flowhost/flowhost/bus/artifacts"
)

// lateStore opens a store when it is first needed: a bucket of an external server reserves
// its size there, which a host without artifacts has no use for.
type lateStore struct {
	objects artifacts.ObjectsConfig

	mu    sync.Mutex
	store artifacts.Store // nil before it is open
}

func (s *lateStore) opened(ctx context.Context) (artifacts.Store, error) {
	return s.open(ctx, s.objects)
}

func (s *lateStore) open(ctx context.Context, config artifacts.ObjectsConfig) (artifacts.Store, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.store == nil {
		objects, err := artifacts.OpenObjects(ctx, config)
		if err != nil {
			return nil, err
		}
		s.store = objects
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

// Sweep implements artifacts.Store. Where there is no bucket, there is nothing to remove.
func (s *lateStore) Sweep(ctx context.Context, referenced func(digest string) (bool, error), now time.Time) (artifacts.Swept, error) {
	existing := s.objects
	existing.Existing = true
	store, err := s.open(ctx, existing)
	if errors.Is(err, artifacts.ErrNotFound) {
		return artifacts.Swept{}, nil
	}
	if err != nil {
		return artifacts.Swept{}, err
	}
	return store.Sweep(ctx, referenced, now)
}
