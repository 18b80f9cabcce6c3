package compile

import (
	"crypto/sha256"
	"encoding/hex"
	"log/slog"
	"os"
	"path/filepath"
	"runtime/debug"
	"sync"
)

// Kind is what a [Store] keeps: the name of its directory. The number is raised with a
// change of the files.
type Kind string

// Kinds of a Store.
const (
	Rewritten Kind = "rewritten-2" // modules in the form in which they are compiled
	Known     Kind = "known-1"     // what checking modules has found
)

// Store keeps what is derived from modules beside their native code: to derive it again
// takes longer than to load it. Each build of the program has files of its own. A nil
// store keeps nothing.
type Store struct {
	dir string
	log *slog.Logger
}

func openStore(own string, log *slog.Logger) *Store { return &Store{own, log} }

// Load returns what is stored under a key, nil when there is nothing or it is damaged.
func (s *Store) Load(kind Kind, key string) []byte {
	if s == nil {
		return nil
	}
	path := s.path(kind, key)
	stored, err := os.ReadFile(path)
	if err != nil || len(stored) < sha256.Size {
		return nil
	}
	content := stored[sha256.Size:]
	if sumOf(path, content) != [sha256.Size]byte(stored) {
		return nil
	}
	return content
}

// Store stores what appendTo appends. A failure is logged, and costs time only.
func (s *Store) Store(kind Kind, key string, appendTo func([]byte) ([]byte, error)) {
	if s == nil {
		return
	}
	path := s.path(kind, key)
	stored, err := appendTo(make([]byte, sha256.Size))
	if err == nil {
		sum := sumOf(path, stored[sha256.Size:])
		copy(stored, sum[:])
		err = write(path, stored)
	}
	if err != nil {
		s.log.Warn("what is known of a module cannot be stored in the cache", "error", err)
	}
}

// sumOf is the checksum of a file. It contains the file's name, so that no file is taken
// for another one.
func sumOf(path string, content []byte) (sum [sha256.Size]byte) {
	h := sha256.New()
	h.Write([]byte(filepath.Base(path)))
	h.Write(content)
	h.Sum(sum[:0])
	return sum
}

// write replaces a file in one step.
func write(path string, content []byte) error {
	dir := filepath.Dir(path)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	file, err := os.CreateTemp(dir, filepath.Base(path)+".*.tmp") // mode 0600
	if err != nil {
		return err
	}
	_, err = file.Write(content)
	if closeErr := file.Close(); err == nil {
		err = closeErr
	}
	if err == nil {
		err = os.Rename(file.Name(), path)
	}
	if err != nil {
		os.Remove(file.Name())
	}
	return err
}

func (s *Store) path(kind Kind, key string) string {
	sum := sha256.Sum256([]byte(build() + "\n" + string(kind) + "\n" + key))
	return filepath.Join(s.dir, string(kind), hex.EncodeToString(sum[:]))
}

// build is the version of the program.
var build = sync.OnceValue(func() string {
	if info, ok := debug.ReadBuildInfo(); ok {
		return info.Main.Version
	}
	return ""
})
