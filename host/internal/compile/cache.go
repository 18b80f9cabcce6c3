package compile

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"time"

	"github.com/tetratelabs/wazero"
)

// maxCache is the bytes of files that a cache keeps from one process to the next: about
// 230 Go modules.
const maxCache = 4 << 30

// cacheName is the directory that a host makes below [Config].CacheDir. It alone
// is written to and pruned: what else lies beside it belongs to the user.
const cacheName = "flowhost-modules"

// cacheTag marks the directory as ours, in the form of bford.info/cachedir, so
// that backups leave it out.
const (
	cacheTagFile = "CACHEDIR.TAG"
	cacheTag     = "Signature: 8a477f597d28d172789f06886806bc55\n# Modules that flowhost has compiled. The directory may be deleted at any time.\n"
)

// CachePath is the directory that a host with this [Config].CacheDir writes to, ""
// when it has none.
func CachePath(dir string) string {
	if dir == "" {
		return ""
	}
	return filepath.Join(dir, cacheName)
}

// OpenCache keeps native code, and what else is derived from modules, in a directory below
// the given one, unless that is "". A cache saves time and nothing else, so one that cannot be used is reported
// and left alone. wazero gives each of its versions, and each kind of machine, a
// directory in there; the code's name is a digest of the module and of the features
// in force.
func OpenCache(dir string, log *slog.Logger) (wazero.CompilationCache, *Store) {
	if dir == "" {
		return nil, nil
	}
	own, err := claimCache(dir)
	if err == nil {
		err = pruneCache(own, maxCache)
	}
	var cache wazero.CompilationCache
	if err == nil {
		cache, err = wazero.NewCompilationCacheWithDir(own)
	}
	if err != nil {
		log.Warn("compiled modules are kept in memory only: their directory cannot be used", "error", err)
		return nil, nil
	}
	return cache, openStore(own, log)
}

// claimCache makes the directory for compiled modules, or checks that it is one
// that a host has made. It holds native code that runs as it is read, so nobody
// else may be able to write there or to replace it.
func claimCache(dir string) (string, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", err
	}
	dir, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return "", err
	}
	if dir, err = filepath.Abs(dir); err != nil {
		return "", err
	}
	if err := openToAll(dir); err != nil {
		return "", err
	}
	own := CachePath(dir)
	if _, err := os.Lstat(own); errors.Is(err, fs.ErrNotExist) {
		if err := makeCache(dir, own); err != nil {
			return "", err
		}
	}
	return own, checkCache(own)
}

// makeCache makes the directory with its tag in one step: another process finds
// both or neither. It fails silently when another one has been faster.
func makeCache(dir, own string) error {
	made, err := os.MkdirTemp(dir, "."+cacheName+"-*") // mode 0700
	if err != nil {
		return err
	}
	err = os.WriteFile(filepath.Join(made, cacheTagFile), []byte(cacheTag), 0o600)
	if err == nil {
		if os.Rename(made, own) == nil {
			return nil
		}
	}
	return errors.Join(err, os.RemoveAll(made))
}

// checkCache refuses a directory that was not made by a host of this user, or
// that others may use.
func checkCache(own string) error {
	info, err := os.Lstat(own)
	if err != nil {
		return err
	}
	if !info.IsDir() {
		return fmt.Errorf("%s is not a directory: remove it, or set another cache", own)
	}
	if err := private(info); err != nil {
		return fmt.Errorf("%s %w: delete it, and the host makes it again", own, err)
	}
	tag := filepath.Join(own, cacheTagFile)
	if info, err := os.Lstat(tag); err != nil || !info.Mode().IsRegular() || info.Size() != int64(len(cacheTag)) {
		return notOurs(own)
	}
	if text, err := os.ReadFile(tag); err != nil || string(text) != cacheTag {
		return notOurs(own)
	}
	return nil
}

func notOurs(own string) error {
	return fmt.Errorf("%s has no file %s of flowhost's, so something else has made it: set another cache, or move it away", own, cacheTagFile)
}

// Names that wazero gives, and a Store: a directory for each version, in there
// files of modules, and those that are being written.
var (
	cacheVersion = regexp.MustCompile(`^(wazero|rewritten|known)-[^/]+$`)
	cacheModule  = regexp.MustCompile(`^[0-9a-f]{64}$`)
	cacheWritten = regexp.MustCompile(`^[0-9a-f]{64}\.[0-9]+\.tmp$`)
)

// leastSize is the bytes that each file counts for, so that the limit bounds the number
// of small ones, too.
const leastSize = 256 << 10

// staleWrite is the age of a file that a process has left behind half written.
const staleWrite = time.Hour

type cacheFile struct {
	at       *os.Root // of the version
	name     string
	size     int64
	modified time.Time
}

// pruneCache removes the oldest modules until the rest is within the limit, and
// what was left half written. It touches only files with names of
// that form.
// Another process may do the same at the same time, and a file that goes away
// under a reader is compiled again.
func pruneCache(own string, limit int64) error {
	root, err := os.OpenRoot(own)
	if err != nil {
		return err
	}
	defer root.Close()
	versions, err := readDir(root)
	var files []cacheFile
	for _, v := range versions {
		if !v.IsDir() || !cacheVersion.MatchString(v.Name()) || !sameDevice(root, v) {
			continue
		}
		at, openErr := root.OpenRoot(v.Name())
		if openErr != nil {
			err = errors.Join(err, ignoreMissing(openErr))
			continue
		}
		defer at.Close()
		more, listErr := modulesIn(at)
		files, err = append(files, more...), errors.Join(err, listErr)
	}
	return errors.Join(err, removeOldest(files, limit))
}

// modulesIn lists the modules of one version, and removes stale writes.
func modulesIn(at *os.Root) ([]cacheFile, error) {
	entries, err := readDir(at)
	var files []cacheFile
	for _, e := range entries {
		info, infoErr := e.Info()
		if infoErr != nil || !info.Mode().IsRegular() {
			err = errors.Join(err, ignoreMissing(infoErr))
			continue
		}
		switch {
		case cacheModule.MatchString(e.Name()):
			files = append(files, cacheFile{at, e.Name(), max(info.Size(), leastSize), info.ModTime()})
		case cacheWritten.MatchString(e.Name()) && time.Since(info.ModTime()) > staleWrite:
			err = errors.Join(err, ignoreMissing(at.Remove(e.Name())))
		}
	}
	return files, err
}

func removeOldest(files []cacheFile, limit int64) (err error) {
	var total int64
	for _, f := range files {
		total += f.size
	}
	slices.SortFunc(files, func(a, b cacheFile) int {
		return cmp.Or(a.modified.Compare(b.modified), cmp.Compare(a.name, b.name))
	})
	for _, f := range files {
		if total <= limit {
			break
		}
		err = errors.Join(err, ignoreMissing(f.at.Remove(f.name)))
		total -= f.size
	}
	return err
}

func readDir(root *os.Root) ([]fs.DirEntry, error) {
	dir, err := root.Open(".")
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	return dir.ReadDir(-1)
}

func ignoreMissing(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}
