package guestfs_test

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/tetratelabs/wazero/experimental/sys"

	"github.com/flowhost/flowhost/host/internal/guestfs"
	"github.com/flowhost/flowhost/run"
)

// secret is in every file that no guest may read.
const secret = "not for guests"

// unseen is a file in every directory that no guest may list.
const unseen = "unseen"

// rig is a directory of the host in which data and out are granted, beside
// what is not, with the FS of a call.
type rig struct {
	*guestfs.FS // of the call
	t           testing.TB
	dir         string
}

// newRig makes this tree. All but what is below flows is what links try to reach.
//
//	outside/secret.txt, outside/unseen
//	flows/secret.txt, flows/unseen
//	flows/data/a.txt "alpha", b/c.txt "gamma"      granted as /data, to read
//	flows/out/old.txt "old", links and a pipe      granted as /out, to write
func newRig(t testing.TB) *rig {
	t.Helper()
	dir := t.TempDir()
	for name, text := range map[string]string{
		"outside/secret.txt": secret, "outside/unseen": "", "flows/unseen": "", "flows/secret.txt": secret,
		"flows/data/a.txt": "alpha", "flows/data/b/c.txt": "gamma", "flows/out/old.txt": "old", "flows/out/d/e.txt": "epsilon",
	} {
		p := filepath.Join(dir, name)
		must(t, os.MkdirAll(filepath.Dir(p), 0o777))
		must(t, os.WriteFile(p, []byte(text), 0o666))
	}
	for _, folder := range []string{"flows/data", "flows/out"} {
		for name, target := range links(dir) {
			must(t, os.Symlink(target, filepath.Join(dir, folder, name)))
		}
		must(t, syscall.Mkfifo(filepath.Join(dir, folder, "pipe"), 0o666))
	}
	must(t, os.Symlink("a.txt", filepath.Join(dir, "flows/data/good")))
	must(t, os.Symlink("d", filepath.Join(dir, "flows/out/good")))

	return &rig{t: t, dir: dir}
}

// links lead out of the directory that they are in, or nowhere.
func links(dir string) map[string]string {
	return map[string]string{
		"up": "..", "parent": "../secret.txt", "far": "../../outside/secret.txt", "folder": "../../outside", "inside_and_out": "b/../../secret.txt",
		"absolute": filepath.Join(dir, "outside/secret.txt"), "root": "/", "etc": "/etc", "proc": "/proc/self/root",
		"dangling": "../nowhere", "new": "../../outside/new.txt", "loop": "loop", "ping": "pong", "pong": "ping", "here": ".",
	}
}

// begin begins a call that is granted data and out.
func (r *rig) begin(limits guestfs.Limits) {
	r.t.Helper()
	r.beginWith(limits, r.grants()...)
}

func (r *rig) beginWith(limits guestfs.Limits, grants ...run.FileGrant) {
	r.t.Helper()
	files, err := guestfs.Open(nil, grants, limits)
	must(r.t, err)
	r.FS = files
	r.t.Cleanup(func() { files.Close() })
}

func (r *rig) grants() []run.FileGrant {
	folder := filepath.Join(r.dir, "flows")
	return []run.FileGrant{
		{Folder: folder, Path: "data", Guest: "/data"},
		{Folder: folder, Path: "out", Guest: "/out", Write: true},
	}
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// want fails the test unless an operation ended so.
func want(t testing.TB, what string, got, want sys.Errno) {
	t.Helper()
	if got != want {
		t.Errorf("%s: %v, want %v", what, got, want)
	}
}

// open opens a file that must be there.
func (r *rig) open(p string, flag sys.Oflag) sys.File {
	r.t.Helper()
	f, errno := r.OpenFile(p, flag, 0o600)
	if errno != 0 {
		r.t.Fatalf("open %s: %v", p, errno)
	}
	return f
}

func (r *rig) read(p string) string {
	r.t.Helper()
	f := r.open(p, sys.O_RDONLY)
	defer f.Close()
	buf := make([]byte, 1<<10)
	n, errno := f.Read(buf)
	want(r.t, "read "+p, errno, 0)
	return string(buf[:n])
}

// list gives the names in a directory, with a mark for their types.
func (r *rig) list(p string) string {
	r.t.Helper()
	f := r.open(p, sys.O_RDONLY|sys.O_DIRECTORY)
	defer f.Close()
	return listOf(r.t, f, 0)
}

func listOf(t testing.TB, f sys.File, n int) string {
	t.Helper()
	found, errno := f.Readdir(n)
	want(t, "readdir", errno, 0)
	marks := map[fs.FileMode]string{0: "", fs.ModeDir: "/", fs.ModeSymlink: "@", fs.ModeIrregular: "?"}
	var names []string
	for _, e := range found {
		names = append(names, e.Name+marks[e.Type])
	}
	return strings.Join(names, " ")
}

// tree describes all files below a directory: names, types, contents, times.
func tree(t testing.TB, dir string) string {
	t.Helper()
	var out strings.Builder
	must(t, filepath.WalkDir(dir, func(p string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := e.Info()
		if err != nil {
			return err
		}
		content := ""
		if info.Mode().IsRegular() {
			bytes, err := os.ReadFile(p)
			if err != nil {
				return err
			}
			content = string(bytes)
		}
		fmt.Fprintf(&out, "%s %v %v %q\n", p, info.Mode(), info.ModTime(), content)
		return nil
	}))
	return out.String()
}
