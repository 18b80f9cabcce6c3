package guestfs_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tetratelabs/wazero/experimental/sys"

	"github.com/flowhost/flowhost/host/internal/guestfs"
	"github.com/flowhost/flowhost/run"
)

func TestNoGrants(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.beginWith(guestfs.Limits{})
	r.hasNothing()
	r.FS = new(guestfs.FS)
	r.hasNothing()
}

func (r *rig) hasNothing() {
	t := r.t
	t.Helper()
	if got := r.list("/"); got != "" {
		t.Errorf("/ holds %q", got)
	}
	for _, p := range []string{"data", "data/a.txt", "/etc/passwd", "..", "../..", "a/b"} {
		if _, errno := r.Stat(p); errno != sys.ENOENT && p[0] != '.' {
			t.Errorf("stat %s: %v", p, errno)
		}
		if f, errno := r.OpenFile(p, sys.O_RDWR|sys.O_CREAT, 0o600); errno == 0 {
			t.Errorf("open %s gives %v", p, f)
		}
	}
	want(t, "mkdir", r.Mkdir("x", 0o700), sys.EROFS)
	want(t, "mkdir deeper", r.Mkdir("x/y", 0o700), sys.ENOENT)
	want(t, "mkdir /", r.Mkdir("/", 0o700), sys.EEXIST)
	if usage := r.Close(); usage != (guestfs.Usage{}) {
		t.Errorf("%+v", usage)
	}
}

func TestMountPoints(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	folder := filepath.Join(r.dir, "flows")
	r.beginWith(guestfs.Limits{}, run.FileGrant{Folder: folder, Path: "data", Guest: "/x/deep/data"},
		run.FileGrant{Folder: folder, Path: "out", Guest: "/x/out", Write: true},
		run.FileGrant{Folder: folder, Path: "data/b", Guest: "/b"})
	for p, names := range map[string]string{".": "b/ x/", "/": "b/ x/", "x": "deep/ out/", "/x/": "deep/ out/", "x/deep": "data/", "b": "c.txt", "x/deep/data/b/": "c.txt"} {
		if got := r.list(p); got != names {
			t.Errorf("%s: %s, want %s", p, got, names)
		}
	}
	if got := r.read("x/deep/data/a.txt"); got != "alpha" {
		t.Errorf("got %q", got)
	}
	for p, errno := range map[string]sys.Errno{"x": sys.EROFS, "x/deep": sys.EROFS, "x/new": sys.EROFS, "x/out": sys.EPERM, "b/c.txt": sys.EROFS, "y/z": sys.ENOENT} {
		want(t, "unlink "+p, r.Unlink(p), errno)
		want(t, "rmdir "+p, r.Rmdir(p), errno)
		want(t, "rename "+p, r.Rename(p, "x/out/z"), errno)
		want(t, "rename to "+p, r.Rename("x/out/old.txt", p), errno)
	}
	want(t, "rename to another grant", r.Rename("x/out/old.txt", "b/old.txt"), sys.EROFS)
	for _, p := range []string{"/", "x", "x/out"} {
		_, errno := r.OpenFile(p, sys.O_RDWR, 0o600)
		want(t, "open "+p+" for writing", errno, sys.EISDIR)
		_, errno = r.OpenFile(p, sys.O_RDONLY|sys.O_CREAT, 0o600)
		want(t, "make "+p, errno, sys.EISDIR)
		want(t, "mkdir "+p, r.Mkdir(p, 0o700), sys.EEXIST)
	}
	_, errno := r.OpenFile("x/new", sys.O_RDWR|sys.O_CREAT, 0o600)
	want(t, "make a file beside grants", errno, sys.EROFS)
	want(t, "utimens", r.Utimens("x", 0, 0), sys.EROFS)
	_, errno = r.Readlink("x")
	want(t, "readlink", errno, sys.EINVAL)
}

func TestRenameBetweenGrants(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	folder := filepath.Join(r.dir, "flows")
	r.beginWith(guestfs.Limits{}, run.FileGrant{Folder: folder, Path: "out", Guest: "/out", Write: true}, run.FileGrant{Folder: folder, Path: "data", Guest: "/data", Write: true})
	want(t, "rename", r.Rename("out/old.txt", "data/old.txt"), sys.ENOTSUP)
	want(t, "rename of what is not there", r.Rename("out/gone", "out/there"), sys.ENOENT)
}

// TestClose leaves files open and looks at them after the call.
func TestClose(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.begin(guestfs.Limits{})
	left, dir, root := r.open("data/a.txt", sys.O_RDONLY), r.open("out", sys.O_RDONLY), r.open("/", sys.O_RDONLY)
	if usage := r.Close(); usage.Open != 3 {
		t.Errorf("three files are open: %+v", usage)
	}
	buf := make([]byte, 1)
	for what, errno := range map[string]sys.Errno{
		"read": second(left.Read(buf)), "pread": second(left.Pread(buf, 0)), "seek": second(left.Seek(0, 0)), "stat": second(left.Stat()),
		"write": second(left.Write(buf)), "truncate": left.Truncate(0), "sync": left.Sync(), "utimens": left.Utimens(0, 0),
		"readdir": second(dir.Readdir(1)), "dir stat": second(dir.Stat()), "dir seek": second(dir.Seek(0, 0)), "dir sync": dir.Datasync(), "dir utimens": dir.Utimens(0, 0),
		"root": second(root.Readdir(1)),
	} {
		want(t, what+" after the call", errno, sys.EBADF)
	}
	want(t, "close", left.Close(), 0)
	_, errno := r.Stat("data")
	want(t, "stat after the call", errno, sys.ENOENT)
	if usage := r.Close(); usage.Open != 0 {
		t.Errorf("closed again: %+v", usage)
	}
}

func second[T any](_ T, errno sys.Errno) sys.Errno { return errno }

func TestGrantsThatAreRefused(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	folder := filepath.Join(r.dir, "flows")
	must(t, os.Symlink("out/pipe", filepath.Join(folder, "to_pipe")))
	must(t, os.Symlink("data", filepath.Join(folder, "link")))
	for words, g := range map[string]run.FileGrant{
		"no place for it":                        {Folder: folder, Path: "data", Guest: "data"},
		`"/" is no place`:                        {Folder: folder, Path: "data", Guest: "/"},
		`"/a/" is no place`:                      {Folder: folder, Path: "data", Guest: "/a/"},
		"overlaps":                               {Folder: folder, Path: "data", Guest: "/out/x"},
		"not an absolute":                        {Folder: "flows", Path: "data", Guest: "/data"},
		"leads out":                              {Folder: folder, Path: "../outside", Guest: "/data"},
		"data/up that is granted as /data":       {Folder: folder, Path: "data/up", Guest: "/data"},
		"data/absolute that is granted as /data": {Folder: folder, Path: "data/etc", Guest: "/data"},
		"data/nowhere that is granted":           {Folder: folder, Path: "data/nowhere", Guest: "/data"},
		"data/a.txt that is granted":             {Folder: folder, Path: "data/a.txt", Guest: "/data", Write: true},
		"out/pipe that is granted":               {Folder: folder, Path: "out/pipe", Guest: "/data"},
		"to_pipe that is granted":                {Folder: folder, Path: "to_pipe", Guest: "/data"},
		"new that is granted":                    {Folder: folder, Path: "out/new/x", Guest: "/data", Write: true},
		"the path contains a link":               {Folder: folder, Path: "link/b", Guest: "/data", Write: true},
		"gone":                                   {Folder: filepath.Join(r.dir, "gone"), Path: "data", Guest: "/data", Write: true},
	} {
		words = strings.Replace(words, "data/absolute", "data/etc", 1)
		words = strings.Replace(words, "new that is", "out/new/x that is", 1)
		before := tree(t, r.dir)
		_, err := guestfs.Open(nil, []run.FileGrant{r.grants()[1], g}, guestfs.Limits{})
		if err == nil || !strings.Contains(err.Error(), words) {
			t.Errorf("%s: %v", words, err)
		}
		if tree(t, r.dir) != before {
			t.Errorf("%s: something was made", words)
		}
	}
	if _, err := guestfs.Open(nil, make([]run.FileGrant, 65), guestfs.Limits{}); err == nil || !strings.Contains(err.Error(), "65 directories") {
		t.Errorf("many: %v", err)
	}
}

func TestFoldersToWriteAreMade(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.beginWith(guestfs.Limits{}, run.FileGrant{Folder: filepath.Join(r.dir, "flows"), Path: "new/deep", Guest: "/new/deep", Write: true})
	f := r.open("new/deep/x", sys.O_WRONLY|sys.O_CREAT|sys.O_EXCL)
	want(t, "close", f.Close(), 0)
	if info, err := os.Stat(filepath.Join(r.dir, "flows/new/deep/x")); err != nil || info.Mode().Perm()&0o600 != 0o600 {
		t.Error(info, err)
	}
}

func TestReadOnly(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.begin(guestfs.Limits{})
	before := tree(t, r.dir)
	for what, errno := range map[string]sys.Errno{
		"write": second(r.OpenFile("data/a.txt", sys.O_WRONLY, 0o600)), "read and write": second(r.OpenFile("data/a.txt", sys.O_RDWR, 0o600)),
		"make": second(r.OpenFile("data/new", sys.O_RDWR|sys.O_CREAT, 0o600)), "empty": second(r.OpenFile("data/a.txt", sys.O_RDWR|sys.O_TRUNC, 0o600)),
		"append": second(r.OpenFile("data/a.txt", sys.O_RDWR|sys.O_APPEND, 0o600)), "mkdir": r.Mkdir("data/made", 0o700),
		"unlink": r.Unlink("data/a.txt"), "rmdir": r.Rmdir("data/b"), "rename": r.Rename("data/a.txt", "data/z"),
		"rename out": r.Rename("data/a.txt", "out/z"), "rename in": r.Rename("out/old.txt", "data/z"), "utimens": r.Utimens("data/a.txt", 0, 0),
	} {
		want(t, what, errno, sys.EROFS)
	}
	f := r.open("data/a.txt", sys.O_RDONLY)
	want(t, "write to a file open for reading", second(f.Write([]byte("x"))), sys.EBADF)
	want(t, "pwrite", second(f.Pwrite([]byte("x"), 0)), sys.EBADF)
	want(t, "truncate", f.Truncate(0), sys.EBADF)
	want(t, "times of an open file", f.Utimens(0, 0), sys.EROFS)
	want(t, "O_TRUNC without writing", second(r.OpenFile("out/old.txt", sys.O_RDONLY|sys.O_TRUNC, 0o600)), sys.EINVAL)
	want(t, "mkdir of what is there", r.Mkdir("data/b", 0o700), sys.EEXIST)
	if after := tree(t, r.dir); after != before {
		t.Errorf("changed:\n%s\nto:\n%s", before, after)
	}
}

func TestLinksAndModesCannotBeMade(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.begin(guestfs.Limits{})
	before := tree(t, r.dir)
	want(t, "symlink", r.Symlink("old.txt", "out/s"), sys.EPERM)
	want(t, "link", r.Link("out/old.txt", "out/l"), sys.EPERM)
	want(t, "chmod", r.Chmod("out/old.txt", fs.ModeSetuid|0o777), sys.ENOSYS)
	if tree(t, r.dir) != before {
		t.Error("something has changed")
	}
	text, errno := r.Readlink("out/good")
	if text != "d" || errno != 0 {
		t.Errorf("readlink: %q %v", text, errno)
	}
	_, errno = r.Readlink("out/old.txt")
	want(t, "readlink of a file", errno, sys.EINVAL)
}
