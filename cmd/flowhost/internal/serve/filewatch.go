package serve

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/fsnotify/fsnotify"

	"github.com/flowhost/flowhost/flows"
)

// fileWatch detects which changes of files may be changes of flows. It is used by
// one goroutine.
type fileWatch struct {
	*fsnotify.Watcher
	roots []string        // directories of flows, absolute
	alone map[string]bool // directories of files that are loaded by themselves, which share other files
	leave map[string]bool // the host's own directories, absolute
	used  map[string]bool // registered files and directories, absolute
	dirs  map[string]bool // watched directories
}

// watchFiles watches files and directories of flows, with all subdirectories except
// hidden ones and those in leave.
func watchFiles(paths, leave []string) (*fileWatch, error) {
	watcher, err := fsnotify.NewWatcher()
	if err != nil {
		return nil, err
	}
	w := &fileWatch{Watcher: watcher, alone: map[string]bool{}, leave: map[string]bool{}, used: map[string]bool{}, dirs: map[string]bool{}}
	for _, dir := range leave {
		if dir != "" {
			w.leave[absolute(dir)] = true
		}
	}
	for _, path := range paths {
		path = absolute(path)
		if info, err := os.Stat(path); err == nil && info.IsDir() {
			w.roots = append(w.roots, path)
		} else {
			w.alone[filepath.Dir(path)] = true
		}
		if err := errors.Join(w.add(path), w.descend(path)); err != nil {
			return nil, errors.Join(err, w.Close())
		}
	}
	return w, nil
}

func absolute(path string) string {
	abs, err := filepath.Abs(path)
	if err != nil { // the working directory has been removed
		return filepath.Clean(path)
	}
	return abs
}

// add registers a file or directory. It watches the parent directory: editors,
// compilers and deployments replace files with new ones.
func (w *fileWatch) add(path string) error {
	w.used[path] = true
	return w.watch(filepath.Dir(path))
}

func (w *fileWatch) watch(dir string) error {
	if w.dirs[dir] {
		return nil
	}
	err := w.Add(dir)
	if err == nil {
		w.dirs[dir] = true
	}
	return err
}

// follow registers all files that a set was loaded from.
func (w *fileWatch) follow(set *flows.Set, more []string) error {
	var errs []error
	for _, path := range append(set.Sources(), more...) {
		errs = append(errs, w.add(absolute(path)))
	}
	return errors.Join(errs...)
}

// descend watches a directory and its subdirectories. It ignores files, and what has
// been removed meanwhile.
func (w *fileWatch) descend(root string) error {
	if info, err := os.Stat(root); err != nil || !info.IsDir() {
		return nil
	}
	return filepath.WalkDir(root+string(filepath.Separator), func(path string, e fs.DirEntry, err error) error {
		path = filepath.Clean(path)
		switch {
		case err != nil && errors.Is(err, fs.ErrNotExist):
			return nil
		case err != nil:
			return err
		case !e.IsDir():
			return nil
		case path != root && strings.HasPrefix(e.Name(), "."), w.leave[path]:
			return fs.SkipDir
		}
		if err := w.watch(path); !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		return nil
	})
}

// matters reports whether flows may have changed, and watches new directories.
func (w *fileWatch) matters(e fsnotify.Event) (bool, error) {
	switch {
	case !e.Has(fsnotify.Create) && !e.Has(fsnotify.Write) && !e.Has(fsnotify.Remove) && !e.Has(fsnotify.Rename):
		return false, nil // of its rights only
	case w.used[e.Name]:
		return true, w.rewatch(e.Name)
	case w.alone[filepath.Dir(e.Name)] && flows.IsSource(filepath.Base(e.Name)), filepath.Base(e.Name) == mounted:
		return true, nil
	case !w.below(e.Name):
		return false, nil
	case w.dirs[e.Name]:
		return true, w.rewatch(e.Name)
	}
	base := filepath.Base(e.Name)
	if flows.IsSource(base) || filepath.Ext(base) == ".wasm" {
		return true, nil
	}
	if !e.Has(fsnotify.Create) || w.leave[e.Name] {
		return false, nil
	}
	known := len(w.dirs)
	err := w.descend(e.Name)
	return len(w.dirs) > known, err
}

// mounted is the link that Kubernetes replaces when it changes the files of a volume,
// which are links through it.
const mounted = "..data"

// below reports whether a path is in a directory of flows and not hidden there.
func (w *fileWatch) below(path string) bool {
	for _, root := range w.roots {
		rel, err := filepath.Rel(root, path)
		if err != nil || !filepath.IsLocal(rel) {
			continue
		}
		hidden := false
		for part := range strings.SplitSeq(rel, string(filepath.Separator)) {
			hidden = hidden || strings.HasPrefix(part, ".")
		}
		return !hidden
	}
	return false
}

// rewatch watches a directory that may have been replaced or removed.
func (w *fileWatch) rewatch(root string) error {
	for dir := range w.dirs {
		if dir == root || strings.HasPrefix(dir, root+string(filepath.Separator)) {
			_ = w.Remove(dir) // fails if the directory has been removed
			delete(w.dirs, dir)
		}
	}
	return w.descend(root)
}
