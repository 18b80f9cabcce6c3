package host

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/tetratelabs/wazero"
)

// maxCache is the bytes of native code that a cache keeps from one process to
// the next.
const maxCache = 1 << 30

// openCache keeps native code in the directory, unless it is "". wazero gives
// each of its versions, and each kind of machine, a folder of its own in there;
// the code's name is a digest of the module and of the features in force.
func openCache(dir string) (wazero.CompilationCache, error) {
	if dir == "" {
		return nil, nil
	}
	err := os.MkdirAll(dir, 0o700)
	if err == nil {
		err = os.Chmod(dir, 0o700) // it may have been there before
	}
	if err != nil {
		return nil, fmt.Errorf("the cache of compiled modules must be a directory of its owner alone: %w", err)
	}
	if err := pruneCache(dir, maxCache); err != nil {
		return nil, fmt.Errorf("pruning the cache of compiled modules: %w", err)
	}
	return wazero.NewCompilationCacheWithDir(dir)
}

type cacheFile struct {
	path     string
	size     int64
	modified time.Time
}

// pruneCache removes the oldest files until the rest is within the limit.
// Another process may do the same at the same time, and a file that goes away
// under a reader is compiled again.
func pruneCache(dir string, limit int64) error {
	var files []cacheFile
	var total int64
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.Type().IsRegular() {
			return ignoreMissing(err)
		}
		info, err := entry.Info()
		if err != nil {
			return ignoreMissing(err)
		}
		files = append(files, cacheFile{path, info.Size(), info.ModTime()})
		total += info.Size()
		return nil
	})
	slices.SortFunc(files, func(a, b cacheFile) int {
		return cmp.Or(a.modified.Compare(b.modified), cmp.Compare(a.path, b.path))
	})
	for _, f := range files {
		if total <= limit {
			break
		}
		err = errors.Join(err, ignoreMissing(os.Remove(f.path)))
		total -= f.size
	}
	return err
}

func ignoreMissing(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}
