package compile

import (
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/flowhost/flowhost/internal/testkit/foreign"
)

// claimed is the directory for modules below a new one.
func claimed(t *testing.T) string {
	t.Helper()
	own, err := claimCache(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return own
}

func writeFile(t *testing.T, name string, size int, age time.Duration) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, make([]byte, size), 0o600); err != nil {
		t.Fatal(err)
	}
	written := time.Now().Add(-age)
	if err := os.Chtimes(name, written, written); err != nil {
		t.Fatal(err)
	}
}

func filesIn(t *testing.T, dir string) (names []string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err == nil && !entry.IsDir() {
			names = append(names, entry.Name())
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return names
}

func moduleName(i int) string { return fmt.Sprintf("%064x", i) }

func TestCacheIsPrunedFromTheOldestOn(t *testing.T) {
	t.Parallel()
	own := claimed(t)
	versions := []string{"wazero-v1.11.0-amd64-linux", "wazero-v1.12.0-amd64-linux"}
	for age := range 6 {
		writeFile(t, filepath.Join(own, versions[age%2], moduleName(age)), 100, time.Duration(age+1)*time.Hour)
	}
	if err := pruneCache(own, 6*leastSize); err != nil {
		t.Fatal(err)
	}
	if n := len(filesIn(t, own)); n != 7 {
		t.Errorf("%d files are left of 6 that fit and the tag", n)
	}
	if err := pruneCache(own, 5*leastSize/2); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{cacheTagFile, moduleName(0), moduleName(1)}, filesIn(t, own)); diff != "" {
		t.Error(diff)
	}
}

// What does not have the form of wazero's files is kept even in our own directory.
func TestPruningKeepsWhatItDoesNotKnow(t *testing.T) {
	t.Parallel()
	own, outside := claimed(t), t.TempDir()
	version := filepath.Join(own, "wazero-v1.12.0-amd64-linux")
	writeFile(t, filepath.Join(version, moduleName(1)), 100, time.Hour)
	writeFile(t, filepath.Join(version, moduleName(2)+".77.tmp"), 100, 2*staleWrite)
	kept := []string{
		filepath.Join(own, moduleName(3)), filepath.Join(own, "thesis.tex"),
		filepath.Join(own, "photos", moduleName(4)),
		filepath.Join(version, "notes"), filepath.Join(version, "sub", moduleName(5)),
		filepath.Join(version, moduleName(6)+".78.tmp"), // another process writes it
		filepath.Join(outside, moduleName(7)),
	}
	for i, name := range kept {
		age := 1000 * time.Hour
		if strings.HasSuffix(name, ".78.tmp") {
			age = 0
		}
		writeFile(t, name, 100+i, age)
	}
	for name, target := range map[string]string{
		filepath.Join(own, "wazero-v1.13.0-amd64-linux"): outside,
		filepath.Join(version, moduleName(8)):            filepath.Join(outside, moduleName(7)),
	} {
		if err := os.Symlink(target, name); err != nil {
			t.Fatal(err)
		}
		kept = append(kept, name)
	}
	if err := pruneCache(own, 1); err != nil {
		t.Fatal(err)
	}
	for _, name := range kept {
		if _, err := os.Lstat(name); err != nil {
			t.Error(err)
		}
	}
	if n := len(filesIn(t, version)); n != len([]string{"notes", "sub/5", "6.78.tmp", "8"}) {
		t.Errorf("left: %q", filesIn(t, version))
	}
}

func TestCacheIsItsOwnersAlone(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	cache, _ := OpenCache(filepath.Join(dir, "deep", "cache"), slog.New(slog.DiscardHandler))
	if cache == nil {
		t.Fatal("no cache")
	}
	defer cache.Close(t.Context())
	for name, want := range map[string]os.FileMode{".": 0o755, "deep": 0o700, "deep/cache": 0o700, "deep/cache/" + cacheName: 0o700} {
		if info, err := os.Stat(filepath.Join(dir, name)); err != nil || info.Mode().Perm() != want {
			t.Errorf("%s: %v, %v, want %v", name, info.Mode(), err, want)
		}
	}
	again, _ := OpenCache(filepath.Join(dir, "deep", "cache"), slog.New(slog.DiscardHandler))
	if again == nil {
		t.Fatal("its own directory is refused")
	}
	again.Close(t.Context())
}

// Each of these is left as it is: the host works without a cache and reports why.
func TestCacheThatCannotBeUsed(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		make func(t *testing.T, dir string) error
		want string
	}{
		"a file":            {func(_ *testing.T, dir string) error { return os.WriteFile(dir, nil, 0o600) }, "not a directory"},
		"a link to nowhere": {func(_ *testing.T, dir string) error { return os.Symlink("nowhere", dir) }, "exists"},
		"a file in our place": {func(_ *testing.T, dir string) error {
			return os.WriteFile(CachePath(dir), nil, 0o600)
		}, "is not a directory"},
		"a link in our place": {func(t *testing.T, dir string) error { return os.Symlink(claimed(t), CachePath(dir)) }, "is not a directory"},
		"no tag":              {func(_ *testing.T, dir string) error { return os.Mkdir(CachePath(dir), 0o700) }, "has no file CACHEDIR.TAG"},
		"another's tag": {func(t *testing.T, dir string) error {
			if err := os.Mkdir(CachePath(dir), 0o700); err != nil {
				return err
			}
			return os.WriteFile(filepath.Join(CachePath(dir), cacheTagFile), []byte(cacheTag[:43]), 0o600)
		}, "has no file CACHEDIR.TAG"},
		"others may read": {func(t *testing.T, dir string) error {
			if _, err := claimCache(dir); err != nil {
				return err
			}
			return os.Chmod(CachePath(dir), 0o750)
		}, "0750"},
		"all may rename": {func(t *testing.T, dir string) error { return os.Chmod(dir, 0o777) }, "everybody may write"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			base := t.TempDir()
			dir := filepath.Join(base, "cache")
			if name != "a file" && name != "a link to nowhere" {
				if err := os.Mkdir(dir, 0o700); err != nil {
					t.Fatal(err)
				}
			}
			if err := test.make(t, dir); err != nil {
				t.Fatal(err)
			}
			before := foreign.Take(t, nil, base)
			var log strings.Builder
			if cache, _ := OpenCache(dir, slog.New(slog.NewTextHandler(&log, nil))); cache != nil {
				cache.Close(t.Context())
				t.Error("it is used")
			}
			if !strings.Contains(log.String(), "level=WARN") || !strings.Contains(log.String(), test.want) {
				t.Errorf("the log does not say %q: %s", test.want, &log)
			}
			if diff := cmp.Diff(before, foreign.Take(t, nil, base)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// Whatever a mistyped setting names stays as it is, but for the directory that is
// made in it.
func TestCacheLeavesForeignTreesAlone(t *testing.T) {
	t.Parallel()
	for seed := range uint64(40) {
		base, outside := t.TempDir(), t.TempDir()
		foreign.Grow(t, base, outside, seed)
		own := CachePath(base)
		_, err := os.Lstat(own)
		except, made := []string{own}, err != nil
		if !made {
			except = nil
		}
		before := foreign.Take(t, except, base, outside)
		if cache, _ := OpenCache(base, slog.New(slog.DiscardHandler)); cache != nil {
			cache.Close(t.Context())
			if !made {
				t.Errorf("seed %d: what was there is taken for a cache", seed)
			}
		}
		if diff := cmp.Diff(before, foreign.Take(t, except, base, outside)); diff != "" {
			t.Errorf("seed %d: %s", seed, diff)
		}
	}
}

func TestCacheMadeByManyAtOnce(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	var work sync.WaitGroup
	for range 8 {
		work.Go(func() {
			if _, err := claimCache(dir); err != nil {
				t.Error(err)
			}
		})
	}
	work.Wait()
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != 1 {
		t.Errorf("%v, %v", entries, err)
	}
}
