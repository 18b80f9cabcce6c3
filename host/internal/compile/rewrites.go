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

// rewritesName is the directory of a RewriteCache; the number is raised with a change of
// its files.
const rewritesName = "rewritten-1"

// RewriteCache stores modules in the form in which they are compiled, beside their native
// code: rewriting them takes longer than loading that. Each build of the program has files
// of its own. A nil cache stores nothing.
type RewriteCache struct {
	dir string
	log *slog.Logger
}

func openRewrites(own string, log *slog.Logger) *RewriteCache {
	return &RewriteCache{filepath.Join(own, rewritesName), log}
}

// Load returns what is stored under a key, nil when there is nothing or it is damaged.
func (c *RewriteCache) Load(key string) []byte {
	if c == nil {
		return nil
	}
	stored, err := os.ReadFile(c.path(key))
	if err != nil || len(stored) < sha256.Size {
		return nil
	}
	content := stored[sha256.Size:]
	if sha256.Sum256(content) != [sha256.Size]byte(stored) {
		return nil
	}
	return content
}

// Store stores what appendTo appends. A failure is logged, and costs time only.
func (c *RewriteCache) Store(key string, appendTo func([]byte) ([]byte, error)) {
	if c == nil {
		return
	}
	stored, err := appendTo(make([]byte, sha256.Size))
	if err == nil {
		sum := sha256.Sum256(stored[sha256.Size:])
		copy(stored, sum[:])
		err = c.write(c.path(key), stored)
	}
	if err != nil {
		c.log.Warn("a rewritten module cannot be stored in the cache", "error", err)
	}
}

// write replaces a file in one step.
func (c *RewriteCache) write(path string, content []byte) error {
	if err := os.MkdirAll(c.dir, 0o700); err != nil {
		return err
	}
	file, err := os.CreateTemp(c.dir, filepath.Base(path)+".*.tmp") // mode 0600
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

func (c *RewriteCache) path(key string) string {
	sum := sha256.Sum256([]byte(build() + "\n" + key))
	return filepath.Join(c.dir, hex.EncodeToString(sum[:]))
}

// build is the version of the program.
var build = sync.OnceValue(func() string {
	if info, ok := debug.ReadBuildInfo(); ok {
		return info.Main.Version
	}
	return ""
})
