package natsd_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/flowhost/flowhost/bus/internal/bustest"
	"github.com/flowhost/flowhost/bus/natsd"
	"github.com/flowhost/flowhost/internal/testkit/foreign"
)

// reachableDir is a directory that every user of the machine can come to: the
// directories of tests lie below a private one.
func reachableDir(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	if err := errors.Join(os.Chmod(filepath.Dir(dir), 0o755), os.Chmod(dir, 0o755)); err != nil {
		t.Fatal(err)
	}
	return dir
}

func mkdir(t *testing.T, mode os.FileMode, parts ...string) string {
	t.Helper()
	dir := filepath.Join(parts...)
	if err := errors.Join(os.Mkdir(dir, 0o700), os.Chmod(dir, mode)); err != nil { // whatever the umask is
		t.Fatal(err)
	}
	return dir
}

// Directories as people, systemd and Kubernetes make them.
func TestDataDirsThatAreUsed(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		make func(t *testing.T, base string) string
		warn string // part of a warning; "" for none
	}{
		"missing":              {func(_ *testing.T, base string) string { return filepath.Join(base, "data") }, ""},
		"missing with parents": {func(_ *testing.T, base string) string { return filepath.Join(base, "var", "lib", "data") }, ""},
		"empty and private":    {func(t *testing.T, base string) string { return mkdir(t, 0o700, base, "data") }, ""},
		"a link to one":        {func(t *testing.T, base string) string { return link(t, mkdir(t, 0o700, base, "data"), base) }, ""},
		"below a private one": {func(t *testing.T, base string) string {
			return mkdir(t, 0o777, mkdir(t, 0o700, base, "private"), "data")
		}, ""},
		"volume with a group": {func(t *testing.T, base string) string { return mkdir(t, 0o770|os.ModeSetgid, base, "data") }, "group"},
		"below an open volume": {func(t *testing.T, base string) string {
			return filepath.Join(mkdir(t, 0o777, base, "mount"), "flowhost")
		}, ""},
		"root of a file system": {func(t *testing.T, base string) string {
			return filepath.Dir(mkdir(t, 0o700, mkdir(t, 0o700, base, "data"), "lost+found"))
		}, ""},
		"mark that was cut short": {func(t *testing.T, base string) string {
			dir := mkdir(t, 0o700, base, "data")
			if err := os.WriteFile(filepath.Join(dir, ".new-123"), []byte(`{"ver`), 0o600); err != nil {
				t.Fatal(err)
			}
			return dir
		}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := test.make(t, reachableDir(t))
			var log *bustest.LogLines
			for round, lines := range []int{1, 0} {
				var again bustest.LogLines
				mode := modeOf(dir)
				bustest.StopServer(t, bustest.StartServer(t, natsd.Config{Dir: dir, Log: again.Logger()}))
				if n := again.Count("new data directory"); n != lines {
					t.Errorf("start %d: %d lines about a new directory, want %d", round, n, lines)
				}
				if now := modeOf(dir); mode != 0 && now != mode {
					t.Errorf("the mode was %v and is %v", mode, now)
				} else if mode == 0 && now.Perm() != 0o700 {
					t.Errorf("the mode of a new directory is %v", now)
				}
				log = &again
			}
			if n := log.Count("level=WARN"); (n > 0) != (test.warn != "") {
				t.Errorf("%d warnings, want one with %q", n, test.warn)
			}
			if test.warn != "" && log.Count(test.warn) == 0 {
				t.Errorf("no warning has %q", test.warn)
			}
		})
	}
}

func modeOf(dir string) os.FileMode {
	info, err := os.Stat(dir)
	if err != nil {
		return 0
	}
	return info.Mode()
}

func link(t *testing.T, target, base string) string {
	t.Helper()
	name := filepath.Join(base, "link")
	if err := os.Symlink(target, name); err != nil {
		t.Fatal(err)
	}
	return name
}

// What is refused is left as it is.
func TestDataDirsThatAreRefused(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		make func(t *testing.T, base string) string
		want string
	}{
		"a file": {func(t *testing.T, base string) string {
			name := filepath.Join(base, "data")
			if err := os.WriteFile(name, nil, 0o600); err != nil {
				t.Fatal(err)
			}
			return name
		}, "is not a directory"},
		"below a file": {func(t *testing.T, base string) string {
			if err := os.WriteFile(filepath.Join(base, "file"), nil, 0o600); err != nil {
				t.Fatal(err)
			}
			return filepath.Join(base, "file", "data")
		}, "data is below a file"},
		"a link to nowhere": {func(t *testing.T, base string) string { return link(t, "nowhere", base) }, "symbolic link to something that is missing"},
		"a link to a foreign one": {func(t *testing.T, base string) string {
			return link(t, filepath.Dir(mkdir(t, 0o700, mkdir(t, 0o700, base, "home"), "photos")), base)
		}, `"photos"`},
		"not empty": {func(t *testing.T, base string) string {
			return filepath.Dir(mkdir(t, 0o700, mkdir(t, 0o700, base, "data"), "sub"))
		}, `"sub"`},
		"others may read":   {func(t *testing.T, base string) string { return mkdir(t, 0o755, base, "data") }, "chmod 700"},
		"others may search": {func(t *testing.T, base string) string { return mkdir(t, 0o711, base, "data") }, "chmod 700"},
		"others may read what is marked": {func(t *testing.T, base string) string {
			dir := filepath.Join(base, "data")
			if err := errors.Join(natsd.ClaimDataDir(dir, "v1", nil), os.Chmod(dir, 0o755)); err != nil {
				t.Fatal(err)
			}
			return dir
		}, "chmod 700"},
		"the mark is a link": {func(t *testing.T, base string) string {
			dir := filepath.Join(base, "data")
			if err := errors.Join(natsd.ClaimDataDir(dir, "v1", nil), os.Rename(filepath.Join(dir, "format"), filepath.Join(base, "format")),
				os.Symlink("../format", filepath.Join(dir, "format"))); err != nil {
				t.Fatal(err)
			}
			return dir
		}, "format is damaged or not flowhost's"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			base := reachableDir(t)
			dir := test.make(t, base)
			before := foreign.Take(t, nil, base)
			for what, do := range map[string]func() error{
				"CheckDataDir": func() error { return natsd.CheckDataDir(dir) },
				"ClaimDataDir": func() error { return natsd.ClaimDataDir(dir, "v1", nil) },
				"StartServer": func() error {
					_, err := natsd.Start(t.Context(), natsd.Config{Dir: dir, NoListen: true})
					return err
				},
				"StartServer in memory": func() error {
					_, err := natsd.Start(t.Context(), natsd.Config{Dir: dir, NoListen: true, Sync: natsd.SyncMemory})
					return err
				},
			} {
				if err := do(); err == nil || !strings.Contains(err.Error(), test.want) {
					t.Errorf("%s = %v, want an error with %q", what, err, test.want)
				}
			}
			if diff := cmp.Diff(before, foreign.Take(t, nil, base)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// No tree that somebody else has made is taken for a data directory.
func TestForeignTreesAreNoDataDirs(t *testing.T) {
	t.Parallel()
	for seed := range uint64(60) {
		dir, outside := t.TempDir(), t.TempDir()
		foreign.Grow(t, dir, outside, seed)
		before := foreign.Take(t, nil, dir, outside)
		if _, err := natsd.Start(t.Context(), natsd.Config{Dir: dir, NoListen: true}); err == nil {
			t.Fatalf("seed %d: a foreign directory is used", seed)
		}
		if diff := cmp.Diff(before, foreign.Take(t, nil, dir, outside)); diff != "" {
			t.Errorf("seed %d: %s", seed, diff)
		}
	}
}

// Processes that start at the same time see one directory, and one of them gets
// the lock.
func TestDataDirClaimedByManyAtOnce(t *testing.T) {
	t.Parallel()
	for round := range 20 {
		dir := filepath.Join(t.TempDir(), "data")
		var work sync.WaitGroup
		errs := make([]error, 8)
		for i := range errs {
			work.Go(func() {
				if errs[i] = natsd.ClaimDataDir(dir, fmt.Sprint("v", i), nil); errs[i] == nil {
					errs[i] = os.WriteFile(filepath.Join(dir, fmt.Sprint("entry", i)), nil, 0o600)
				}
			})
		}
		work.Wait()
		if err := errors.Join(errs...); err != nil {
			t.Fatalf("round %d: %v", round, err)
		}
	}
}

// A file that lies where the lock should be is not written to through a link.
func TestLockIsNoLink(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	precious := filepath.Join(t.TempDir(), "precious")
	err := errors.Join(natsd.ClaimDataDir(dir, "v1", nil), os.WriteFile(precious, []byte("text"), 0o600),
		os.Symlink(precious, filepath.Join(dir, "flowhost.lock")))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := natsd.Start(t.Context(), natsd.Config{Dir: dir, NoListen: true}); err == nil {
		t.Error("the server has started")
	}
	if text, err := os.ReadFile(precious); err != nil || string(text) != "text" {
		t.Errorf("%q, %v", text, err)
	}
}
