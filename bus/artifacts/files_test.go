package artifacts_test

import (
	"bytes"
	"context"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/flowhost/flowhost/bus/artifacts"
)

// allFiles are the names of all files below a directory.
func allFiles(t testing.TB, dir string) []string {
	t.Helper()
	var names []string
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			names = append(names, path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return names
}

// TestFilesLayout is what others may rely on: a backup, and who looks for an artifact.
func TestFilesLayout(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	f := openFiles(t, dir, 0)
	digest := put(t, f, []byte("report"), "text/plain", time.Now())[len("sha256:"):]
	name := filepath.Join(dir, digest[:2], digest)
	if got := allFiles(t, dir); !slices.Equal(got, []string{name, name + ".type"}) {
		t.Errorf("got %q", got)
	}
	if data, err := os.ReadFile(name); err != nil || string(data) != "report" {
		t.Errorf("%q, %v", data, err)
	}
	if info, err := os.Stat(name); err != nil || info.Mode().Perm()&0o077 != 0 {
		t.Errorf("%v, %v: others may read it", info.Mode(), err)
	}
}

// TestFilesOfOthers has a directory with files that are no artifacts: they stay.
func TestFilesOfOthers(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	foreign := []string{"notes.txt", "tmp/notes.txt", "tmp/deeper/notes.txt", "ab/notes.txt", "abc/x", "ab/" + digestOf([]byte("elsewhere"))[7:], "zz/" + string(bytes.Repeat([]byte("z"), 64))}
	for _, name := range foreign {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte("x"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	f := openFiles(t, dir, 0)
	if _, err := f.Sweep(t.Context(), func(string) (bool, error) { return false, nil }, time.Now().Add(10*artifacts.Grace)); err != nil {
		t.Fatal(err)
	}
	if got := allFiles(t, dir); len(got) != len(foreign) {
		t.Errorf("%q are left, want all of %q", got, foreign)
	}
}

// TestFilesDoNotFollowLinks has a directory of digests lead elsewhere.
func TestFilesDoNotFollowLinks(t *testing.T) {
	t.Parallel()
	dir, elsewhere := t.TempDir(), t.TempDir()
	data := []byte("report")
	if err := os.Symlink(elsewhere, filepath.Join(dir, digestOf(data)[7:9])); err != nil {
		t.Fatal(err)
	}
	f := openFiles(t, dir, 0)
	if _, err := store(t.Context(), f, data, "", time.Now()); err == nil {
		t.Error("an artifact is stored by a link")
	}
	if got := allFiles(t, elsewhere); len(got) > 0 {
		t.Errorf("%q are written outside", got)
	}
}

// TestFilesSweptBesideWriters has sweeps with nothing referenced run beside writers of the
// same artifacts: what has just been committed is there.
func TestFilesSweptBesideWriters(t *testing.T) {
	t.Parallel()
	opened := openFiles(t, t.TempDir(), 0)
	ctx, cancel := context.WithCancel(t.Context())
	var sweeps sync.WaitGroup
	sweeps.Go(func() {
		for ctx.Err() == nil {
			_, err := opened.Sweep(ctx, func(string) (bool, error) { return false, nil }, time.Now())
			if err != nil && ctx.Err() == nil {
				t.Error(err)
			}
		}
	})
	for i := range 60 {
		data := noise(uint64(i%3), 10<<10)
		// Files of long ago: each sweep wants to remove them.
		digest := put(t, opened, data, "", time.Now().Add(-2*artifacts.Grace))
		put(t, opened, data, "", time.Now())
		if got, _ := get(t, opened, digest); !bytes.Equal(got, data) {
			t.Error("the artifact is changed")
		}
	}
	cancel()
	sweeps.Wait()
}
