package host

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
)

// Source keeps modules by digest. It is safe for concurrent use.
type Source interface {
	// Open gives the bytes of a module, which the caller must not change. It
	// fails with fs.ErrNotExist when the source does not have it.
	Open(ctx context.Context, digest string) ([]byte, error)

	// Size gives the bytes of a module without reading it. It fails with
	// fs.ErrNotExist when the source does not have it.
	Size(ctx context.Context, digest string) (int64, error)

	// Keep stores a module under its digest, "sha256:" and 64 hex digits. To
	// keep one again changes nothing.
	Keep(ctx context.Context, digest string, module []byte) error
}

const digestPrefix = "sha256:"

func digestOf(module []byte) string {
	sum := sha256.Sum256(module)
	return digestPrefix + hex.EncodeToString(sum[:])
}

// MemorySource is a [Source] that lasts as long as the process.
type MemorySource struct {
	mu      sync.RWMutex
	modules map[string][]byte
}

// NewMemorySource makes an empty source.
func NewMemorySource() *MemorySource {
	return &MemorySource{modules: map[string][]byte{}}
}

// Open implements [Source].
func (s *MemorySource) Open(_ context.Context, digest string) ([]byte, error) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	module, ok := s.modules[digest]
	if !ok {
		return nil, fmt.Errorf("module %s: %w", digest, fs.ErrNotExist)
	}
	return module, nil
}

// Size implements [Source].
func (s *MemorySource) Size(ctx context.Context, digest string) (int64, error) {
	module, err := s.Open(ctx, digest)
	return int64(len(module)), err
}

// Keep implements [Source].
func (s *MemorySource) Keep(_ context.Context, digest string, module []byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, ok := s.modules[digest]; !ok {
		s.modules[digest] = bytes.Clone(module)
	}
	return nil
}

// Folder is a [Source] that keeps modules in files of a directory, <hex>.wasm. The
// directory is made, for its owner alone, when the first module is kept.
type Folder string

// Open implements [Source]. It fails when the file's content is not the one
// that was kept.
func (f Folder) Open(_ context.Context, digest string) ([]byte, error) {
	path, err := f.path(digest)
	if err != nil {
		return nil, err
	}
	module, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	if have := digestOf(module); have != digest {
		return nil, fmt.Errorf("module %s is damaged: its content has the digest %s; delete it and deploy its flow again", path, have)
	}
	return module, nil
}

// Size implements [Source].
func (f Folder) Size(_ context.Context, digest string) (int64, error) {
	path, err := f.path(digest)
	if err != nil {
		return 0, err
	}
	info, err := os.Stat(path)
	if err != nil {
		return 0, err
	}
	return info.Size(), nil
}

// Keep implements [Source]. A file that is damaged is replaced.
func (f Folder) Keep(ctx context.Context, digest string, module []byte) error {
	path, err := f.path(digest)
	if err != nil {
		return err
	}
	if _, err := f.Open(ctx, digest); err == nil {
		return nil
	}
	if err := os.MkdirAll(string(f), 0o700); err != nil {
		return err
	}
	return writeAtomic(path, module)
}

func (f Folder) path(digest string) (string, error) {
	name, ok := strings.CutPrefix(digest, digestPrefix)
	raw, err := hex.DecodeString(name)
	if !ok || err != nil || len(raw) != sha256.Size || strings.ToLower(name) != name {
		return "", fmt.Errorf("%q is not a digest of a module: sha256: and 64 hex digits are expected: %w", digest, fs.ErrNotExist)
	}
	return filepath.Join(string(f), name+".wasm"), nil
}

// writeAtomic lets the file appear at its path only when all of it is on disk.
func writeAtomic(path string, content []byte) (err error) {
	file, err := os.CreateTemp(filepath.Dir(path), ".module-*")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			os.Remove(file.Name())
		}
	}()
	_, err = file.Write(content)
	if err == nil {
		err = file.Sync()
	}
	if closeErr := file.Close(); err == nil {
		err = closeErr
	}
	if err != nil {
		return err
	}
	return os.Rename(file.Name(), path)
}
