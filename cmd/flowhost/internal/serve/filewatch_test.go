package serve

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/fsnotify/fsnotify"
)

// notices reports whether changes matter, at once or within some time.
func notices(t *testing.T, w *fileWatch, within time.Duration) bool {
	t.Helper()
	end := time.After(within)
	for {
		select {
		case e := <-w.Events:
			matters, err := w.matters(e)
			if err != nil {
				t.Fatal(err)
			}
			if matters {
				return true
			}
		case err := <-w.Errors:
			t.Fatal(err)
		case <-end:
			return false
		}
	}
}

// settle takes all events up to that of a file that matters.
func settle(t *testing.T, w *fileWatch, file string) {
	t.Helper()
	write(t, file)
	for e := range w.Events {
		if _, err := w.matters(e); err != nil {
			t.Fatal(err)
		}
		if e.Name == file && e.Has(fsnotify.Write) { // written, after it was made
			return
		}
	}
}

func write(t *testing.T, file string) {
	t.Helper()
	if err := os.WriteFile(file, []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
}

func do(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// What matters, and what does not: changes that do not are followed by one that
// does, so that nothing has to be waited for.
func TestFileWatch(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		change  func(t *testing.T, dir string)
		matters bool
	}{
		"a flow file is written":        {func(t *testing.T, dir string) { write(t, dir+"/flows/a.hcl") }, true},
		"one is new":                    {func(t *testing.T, dir string) { write(t, dir+"/flows/sub/new.hcl.json") }, true},
		"one is removed":                {func(t *testing.T, dir string) { do(t, os.Remove(dir+"/flows/a.hcl")) }, true},
		"one is put in place":           {func(t *testing.T, dir string) { do(t, os.Rename(dir+"/flows/draft", dir+"/flows/a.hcl")) }, true},
		"values":                        {func(t *testing.T, dir string) { write(t, dir+"/flows/flowhost.vars.hcl") }, true},
		"a module":                      {func(t *testing.T, dir string) { write(t, dir+"/flows/a.wasm") }, true},
		"a directory of flows":          {func(t *testing.T, dir string) { do(t, os.Rename(dir+"/stage", dir+"/flows/stage")) }, true},
		"a directory goes":              {func(t *testing.T, dir string) { do(t, os.RemoveAll(dir+"/flows/sub")) }, true},
		"the directory is another":      {func(t *testing.T, dir string) { do(t, os.Rename(dir+"/flows", dir+"/old")) }, true},
		"one beside a file alone":       {func(t *testing.T, dir string) { write(t, dir+"/single/b.hcl") }, true},
		"values beside a file alone":    {func(t *testing.T, dir string) { write(t, dir+"/single/x.auto.vars.hcl") }, true},
		"a module beside a file alone":  {func(t *testing.T, dir string) { write(t, dir+"/single/b.wasm") }, false},
		"a file in use elsewhere":       {func(t *testing.T, dir string) { write(t, dir+"/lib/used.wasm") }, true},
		"another file there":            {func(t *testing.T, dir string) { write(t, dir+"/lib/b.hcl") }, false},
		"beside the flows":              {func(t *testing.T, dir string) { write(t, dir+"/b.hcl") }, false},
		"settings":                      {func(t *testing.T, dir string) { write(t, dir+"/flows/flowhost.hcl") }, true},
		"settings of a subdirectory":    {func(t *testing.T, dir string) { write(t, dir+"/flows/sub/flowhost.hcl") }, false},
		"data of guests":                {func(t *testing.T, dir string) { write(t, dir+"/flows/sub/data.csv") }, false},
		"a swap file":                   {func(t *testing.T, dir string) { write(t, dir+"/flows/.a.hcl.swp") }, false},
		"a hidden directory":            {func(t *testing.T, dir string) { do(t, os.Mkdir(dir+"/flows/.git", 0o700)) }, false},
		"the host's own directory":      {func(t *testing.T, dir string) { write(t, dir+"/flows/data/x.hcl") }, false},
		"rights":                        {func(t *testing.T, dir string) { do(t, os.Chmod(dir+"/flows/a.hcl", 0o640)) }, false},
		"a volume of Kubernetes":        {func(t *testing.T, dir string) { do(t, os.Symlink("x", dir+"/flows/..data")) }, true},
		"a volume with a file in use":   {func(t *testing.T, dir string) { do(t, os.Symlink("x", dir+"/lib/..data")) }, true},
		"a directory of the same start": {func(t *testing.T, dir string) { do(t, os.Mkdir(dir+"/flows2", 0o700)) }, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			for _, folder := range []string{"flows/sub", "flows/data", "lib", "stage", "single"} {
				do(t, os.MkdirAll(filepath.Join(dir, folder), 0o700))
			}
			for _, file := range []string{"flows/a.hcl", "flows/draft", "lib/used.wasm", "stage/s.hcl", "single/a.hcl"} {
				write(t, filepath.Join(dir, file))
			}
			w, err := watchFiles([]string{dir + "/flows", dir + "/single/a.hcl"}, []string{dir + "/flows/data", ""})
			if err != nil {
				t.Fatal(err)
			}
			defer w.Close()
			do(t, w.add(filepath.Join(dir, "lib", "used.wasm")))
			do(t, w.add(filepath.Join(dir, "flows", "flowhost.hcl"))) // not there yet
			tt.change(t, dir)
			if tt.matters {
				if !notices(t, w, time.Minute) {
					t.Error("the change is not noticed")
				}
				return
			}
			last := filepath.Join(dir, "lib", "used.wasm")
			write(t, last)
			for e := range w.Events {
				matters, err := w.matters(e)
				if err != nil {
					t.Fatal(err)
				}
				if e.Name == last {
					break
				}
				if matters {
					t.Errorf("%s matters", e)
				}
			}
		})
	}
}

// New directories are watched, and those that replace others.
func TestFileWatchFollows(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	do(t, os.MkdirAll(dir+"/one/sub", 0o700))
	do(t, os.MkdirAll(dir+"/two/deep/er", 0o700))
	do(t, os.Symlink("one", dir+"/flows"))
	w, err := watchFiles([]string{dir + "/flows"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	settle(t, w, dir+"/flows/sub/a.hcl")
	do(t, os.Symlink("two", dir+"/next"))
	do(t, os.Rename(dir+"/next", dir+"/flows"))
	if !notices(t, w, time.Minute) {
		t.Fatal("another directory of the same name is not noticed")
	}
	settle(t, w, dir+"/flows/deep/er/a.hcl")
	do(t, os.Mkdir(dir+"/flows/deep/new", 0o700))
	if !notices(t, w, time.Minute) {
		t.Fatal("a new directory is not noticed")
	}
	settle(t, w, dir+"/flows/deep/new/a.hcl")
}
