package artifacts

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/flowhost/flowhost/bus/internal/jskit"
)

const (
	partial = "tmp"   // the directory of files that are being written
	typed   = ".type" // follows the name of the file that has the content type of another one
)

// FilesConfig configures [Files]. Its zero value works, but for Dir.
type FilesConfig struct {
	Dir   string       // "DATA/artifacts"; made when it is missing. One process uses it
	Quota int64        // bytes of all artifacts, default DefaultQuota
	Log   *slog.Logger // default: none
}

// Files keeps artifacts as files <2 digits>/<64 digits> of a directory. The time of a file's
// last change is when the artifact was last retained.
type Files struct {
	root  *os.Root
	quota quota
	log   *slog.Logger

	// names is held to look at a name and change what is there: between a sweep and whoever
	// stores or retains the same artifact.
	names sync.Mutex
}

// OpenFiles opens a directory of artifacts, and removes what a crash has left half written.
// The caller closes it.
func OpenFiles(cfg FilesConfig) (*Files, error) {
	if cfg.Quota <= 0 {
		cfg.Quota = DefaultQuota
	}
	if err := os.MkdirAll(cfg.Dir, 0o700); err != nil {
		return nil, fmt.Errorf("artifacts: %w", err)
	}
	root, err := os.OpenRoot(cfg.Dir)
	if err != nil {
		return nil, fmt.Errorf("artifacts: %w", err)
	}
	f := &Files{root: root, quota: quota{most: cfg.Quota}, log: jskit.Logger(cfg.Log)}
	if err := f.start(); err != nil {
		root.Close()
		return nil, fmt.Errorf("artifacts: %w", err)
	}
	return f, nil
}

// Close ends the use of the directory. Readers and writers that are open may end later.
func (f *Files) Close() error { return f.root.Close() }

// start removes leftovers and measures what is there.
func (f *Files) start() error {
	if err := f.root.MkdirAll(partial, 0o700); err != nil {
		return err
	}
	left, err := fs.ReadDir(f.root.FS(), partial)
	if err != nil {
		return err
	}
	for _, entry := range left {
		if !entry.Type().IsRegular() || len(entry.Name()) != len(rand.Text()) {
			continue // somebody else's
		}
		if err := f.root.Remove(path.Join(partial, entry.Name())); err != nil {
			return err
		}
		f.log.Info("an artifact that was never finished is removed", "file", entry.Name())
	}
	return f.each(func(_ string, info fs.FileInfo) error {
		f.quota.used += charge(info.Size())
		return nil
	})
}

// each calls do for every artifact, by the name of its file.
func (f *Files) each(do func(name string, info fs.FileInfo) error) error {
	dirs, err := fs.ReadDir(f.root.FS(), ".")
	if err != nil {
		return err
	}
	for _, dir := range dirs {
		if !dir.IsDir() || len(dir.Name()) != 2 {
			continue
		}
		files, err := fs.ReadDir(f.root.FS(), dir.Name())
		if err != nil {
			return err
		}
		for _, file := range files {
			info, err := file.Info()
			if errors.Is(err, fs.ErrNotExist) || !isName(file.Name()) || !strings.HasPrefix(file.Name(), dir.Name()) {
				continue
			}
			if err == nil {
				err = do(file.Name(), info)
			}
			if err != nil {
				return err
			}
		}
	}
	return nil
}

func place(name string) string { return name[:2] + "/" + name }

// Open implements [Store].
func (f *Files) Open(_ context.Context, digest string) (Reader, error) {
	n := name(digest)
	if n == "" {
		return nil, ErrNotFound
	}
	file, err := f.root.Open(place(n))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, ErrNotFound
	}
	if err != nil {
		return nil, err
	}
	info, err := file.Stat()
	if err != nil {
		file.Close()
		return nil, err
	}
	contentType, err := f.root.ReadFile(place(n) + typed)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		f.log.Warn("the content type of an artifact cannot be read", "digest", digest, "error", err)
	}
	return &fileReader{file, Info{info.Size(), string(contentType)}}, nil
}

type fileReader struct {
	file *os.File
	info Info
}

func (r *fileReader) Info() Info   { return r.info }
func (r *fileReader) Close() error { return r.file.Close() }

func (r *fileReader) ReadAt(_ context.Context, p []byte, offset int64) (int, error) {
	n, err := r.file.ReadAt(p, offset)
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return n, err
}

// Begin implements [Store].
func (f *Files) Begin(context.Context) (Writer, error) {
	if !f.quota.take(charge(0)) {
		return nil, ErrFull
	}
	n := path.Join(partial, rand.Text())
	file, err := f.root.OpenFile(n, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		f.quota.add(-charge(0))
		return nil, full(err)
	}
	return &fileWriter{files: f, name: n, file: file}, nil
}

type fileWriter struct {
	files *Files
	name  string
	file  *os.File // nil once it has ended
	size  int64
}

func (w *fileWriter) Write(_ context.Context, p []byte) error {
	size := w.size + int64(len(p))
	if !w.files.quota.take(charge(size) - charge(w.size)) {
		return ErrFull
	}
	w.size = size
	_, err := w.file.Write(p)
	return full(err)
}

func (w *fileWriter) Commit(_ context.Context, digest string, info Info, now time.Time) error {
	n := name(digest)
	if n == "" {
		return fmt.Errorf("%q is no digest", digest)
	}
	err := errors.Join(w.file.Sync(), w.file.Close())
	if err != nil {
		return full(err)
	}
	if err := w.files.adopt(w.name, n, info, now); err != nil {
		return full(err)
	}
	w.file = nil
	return full(errors.Join(w.files.sync(n[:2]), w.files.sync(".")))
}

func (w *fileWriter) Discard(context.Context) {
	if w.file == nil {
		return
	}
	_ = w.file.Close() // what it holds is removed
	w.file = nil
	w.files.quota.add(-charge(w.size))
	if err := w.files.root.Remove(w.name); err != nil && !errors.Is(err, fs.ErrNotExist) {
		w.files.log.Warn("a file that is not needed any more cannot be removed, the next start removes it", "file", w.name, "error", err)
	}
}

// adopt gives a file its name among the artifacts. Where there is one already, it takes its
// place, since that one may be damaged, and its content type stays.
func (f *Files) adopt(file, name string, info Info, now time.Time) error {
	f.names.Lock()
	defer f.names.Unlock()
	former, err := f.root.Stat(place(name))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		if err = f.root.MkdirAll(name[:2], 0o700); err == nil {
			err = f.describe(name, info)
		}
		if err != nil {
			return err
		}
	case err != nil:
		return err
	}
	if err := f.root.Chtimes(file, now, now); err != nil {
		return err
	}
	if err := f.root.Rename(file, place(name)); err != nil {
		return err
	}
	if former != nil {
		f.quota.add(-charge(former.Size()))
	}
	return nil
}

// describe stores the content type beside the artifact, before it.
func (f *Files) describe(name string, info Info) error {
	if info.ContentType == "" {
		err := f.root.Remove(place(name) + typed) // that a crash has left
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		return err
	}
	file, err := f.root.OpenFile(place(name)+typed, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, err = io.WriteString(file, info.ContentType)
	return errors.Join(err, file.Sync(), file.Close())
}

// sync makes the names in a directory durable.
func (f *Files) sync(dir string) error {
	d, err := f.root.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// Retain implements [Store].
func (f *Files) Retain(_ context.Context, digests []string, now time.Time) error {
	f.names.Lock()
	defer f.names.Unlock()
	for _, digest := range digests {
		n := name(digest)
		if n == "" {
			return fmt.Errorf("%.80q: %w", digest, ErrNotFound)
		}
		if err := f.root.Chtimes(place(n), now, now); errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("%s: %w", digest, ErrNotFound)
		} else if err != nil {
			return err
		}
	}
	return nil
}

// Sweep implements [Store].
func (f *Files) Sweep(ctx context.Context, referenced func(digest string) (bool, error), now time.Time) (Swept, error) {
	var unknown error
	var swept Swept
	err := f.each(func(n string, info fs.FileInfo) error {
		if err := context.Cause(ctx); err != nil {
			return err
		}
		what, err := decide(prefix+n, info.ModTime(), now, referenced)
		if err != nil && unknown == nil {
			unknown = fmt.Errorf("artifact %s is kept: %w", prefix+n, err)
		}
		removed, err := f.carryOut(what, n, info, now)
		if removed {
			swept.add(info.Size())
		}
		return err
	})
	return swept, errors.Join(err, unknown)
}

// carryOut does what a sweep has decided, unless the artifact was retained meanwhile. It
// reports whether the artifact is removed.
func (f *Files) carryOut(what decision, name string, seen fs.FileInfo, now time.Time) (bool, error) {
	if what == keep {
		return false, nil
	}
	f.names.Lock()
	defer f.names.Unlock()
	info, err := f.root.Stat(place(name))
	if errors.Is(err, fs.ErrNotExist) || err == nil && !info.ModTime().Equal(seen.ModTime()) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	if what == touch {
		return false, f.root.Chtimes(place(name), now, now)
	}
	if err := f.root.Remove(place(name)); err != nil {
		return false, err
	}
	f.quota.add(-charge(info.Size()))
	f.log.Info("an artifact is removed that no run refers to", "digest", prefix+name, "bytes", info.Size())
	if err := f.root.Remove(place(name) + typed); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return true, err
	}
	return true, nil
}

// full is ErrFull for the error of a disk that is full.
func full(err error) error {
	if errors.Is(err, syscall.ENOSPC) {
		return fmt.Errorf("%w (%w)", ErrFull, jskit.ErrNoRoom)
	}
	return err
}
