package host

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestCacheIsPrunedFromTheOldestOn(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	versions := []string{"wazero-v1.11.0-amd64-linux", "wazero-v1.12.0-amd64-linux"}
	for age := range 6 {
		name := filepath.Join(dir, versions[age%2], fmt.Sprint("file-", age))
		if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, make([]byte, 100), 0o600); err != nil {
			t.Fatal(err)
		}
		written := time.Unix(1_000_000, 0).Add(-time.Duration(age) * time.Hour)
		if err := os.Chtimes(name, written, written); err != nil {
			t.Fatal(err)
		}
	}
	left := func() (names []string) {
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
	if err := pruneCache(dir, 600); err != nil {
		t.Fatal(err)
	}
	if n := len(left()); n != 6 {
		t.Errorf("%d files are left of 6 that fit", n)
	}
	if err := pruneCache(dir, 250); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"file-0", "file-1"}, left()); diff != "" {
		t.Error(diff)
	}
}

func TestCacheIsItsOwnersAlone(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "cache")
	if err := os.Mkdir(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	cache, err := openCache(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer cache.Close(t.Context())
	info, err := os.Stat(dir)
	if err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
	if _, err := openCache(filepath.Join(dir, "file")); err != nil {
		t.Error(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "blocked"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := openCache(filepath.Join(dir, "blocked")); err == nil {
		t.Error("a file is taken for a folder")
	}
}
