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

// fileWatch tells which changes of files may be changes of flows. It is used on
// one goroutine.
type fileWatch struct {
	*fsnotify.Watcher
	roots   []string        // folders of flows, absolute
	leave   map[string]bool // folders of the host's own, absolute
	used    map[string]bool // files and folders that count wherever they are, absolute
	folders map[string]bool // that are watched
}

// watchFiles watches files and folders of flows, with all folders below them but
// hidden ones and those to leave out.
func watchFiles(paths, leave []string) (*fileWatch, error) {
	watcher, err := fsnotify.NewWatcher()
	if err != nil {
		return nil, err
	}
	w := &fileWatch{Watcher: watcher, leave: map[string]bool{}, used: map[string]bool{}, folders: map[string]bool{}}
	for _, folder := range leave {
		if folder != "" {
			w.leave[absolute(folder)] = true
		}
	}
	for _, path := range paths {
		path = absolute(path)
		if info, err := os.Stat(path); err == nil && info.IsDir() {
			w.roots = append(w.roots, path)
		}
		if err := errors.Join(w.add(path), w.descend(path)); err != nil {
			return nil, errors.Join(err, w.Close())
		}
	}
	return w, nil
}

func absolute(path string) string {
	abs, err := filepath.Abs(path)
	if err != nil { // the process has no working folder any more, and relative paths lead nowhere
		return filepath.Clean(path)
	}
	return abs
}

// add lets a file or a folder count by itself. What is watched is the folder that
// it is in: editors, compilers and deployments put new files in place of old ones.
func (w *fileWatch) add(path string) error {
	w.used[path] = true
	return w.watch(filepath.Dir(path))
}

func (w *fileWatch) watch(folder string) error {
	if w.folders[folder] {
		return nil
	}
	err := w.Add(folder)
	if err == nil {
		w.folders[folder] = true
	}
	return err
}

// follow lets all files count that a set was made of.
func (w *fileWatch) follow(set *flows.Set, more []string) error {
	var errs []error
	for _, path := range append(set.Sources(), more...) {
		errs = append(errs, w.add(absolute(path)))
	}
	return errors.Join(errs...)
}

// descend watches a folder and those below it. A file, or what is gone meanwhile,
// has none.
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

// matters reports whether flows may have changed, and watches folders that are
// new.
func (w *fileWatch) matters(e fsnotify.Event) (bool, error) {
	switch {
	case !e.Has(fsnotify.Create) && !e.Has(fsnotify.Write) && !e.Has(fsnotify.Remove) && !e.Has(fsnotify.Rename):
		return false, nil // of its rights only
	case w.used[e.Name]:
		return true, w.anew(e.Name)
	case !w.below(e.Name):
		return false, nil
	case w.folders[e.Name]:
		return true, w.anew(e.Name)
	}
	base := filepath.Base(e.Name)
	if base == mounted || flows.IsSource(base) || filepath.Ext(base) == ".wasm" {
		return true, nil
	}
	if !e.Has(fsnotify.Create) || w.leave[e.Name] {
		return false, nil
	}
	known := len(w.folders)
	err := w.descend(e.Name)
	return len(w.folders) > known, err
}

// mounted is the link that Kubernetes puts in place of another one when it changes
// the files of a volume, which are links through it.
const mounted = "..data"

// below reports whether a path lies in a folder of flows and is not hidden there.
func (w *fileWatch) below(path string) bool {
	for _, root := range w.roots {
		rel, err := filepath.Rel(root, path)
		if err != nil || !filepath.IsLocal(rel) {
			continue
		}
		hidden := false
		for part := range strings.SplitSeq(rel, string(filepath.Separator)) {
			hidden = hidden || strings.HasPrefix(part, ".") && part != mounted
		}
		return !hidden
	}
	return false
}

// anew watches a folder again that may be another one of the same name, or gone.
func (w *fileWatch) anew(root string) error {
	for folder := range w.folders {
		if folder == root || strings.HasPrefix(folder, root+string(filepath.Separator)) {
			_ = w.Remove(folder) // it is not watched any more where the folder is gone
			delete(w.folders, folder)
		}
	}
	return w.descend(root)
}
