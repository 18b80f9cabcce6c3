package engine

import (
	"bytes"
	"context"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"sync"
)

// MemoryStore is a Store that lives as long as the process. The zero value is
// empty and ready.
type MemoryStore struct {
	mu    sync.Mutex
	items map[string][]byte
}

// NewMemoryStore gives an empty store.
func NewMemoryStore() *MemoryStore { return new(MemoryStore) }

// Put is part of Store.
func (s *MemoryStore) Put(ctx context.Context, name string, data []byte) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.items == nil {
		s.items = map[string][]byte{}
	}
	s.items[name] = bytes.Clone(data)
	return nil
}

// Get is part of Store.
func (s *MemoryStore) Get(ctx context.Context, name string) ([]byte, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	data, ok := s.items[name]
	if !ok {
		return nil, fmt.Errorf("%s: %w", name, fs.ErrNotExist)
	}
	return bytes.Clone(data), nil
}

// Delete is part of Store.
func (s *MemoryStore) Delete(ctx context.Context, name string) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.items, name)
	return nil
}

// List is part of Store.
func (s *MemoryStore) List(ctx context.Context) ([]string, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Sorted(maps.Keys(s.items)), nil
}
