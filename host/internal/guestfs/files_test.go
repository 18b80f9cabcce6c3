package guestfs_test

import (
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/tetratelabs/wazero/experimental/sys"

	"github.com/flowhost/flowhost/host/internal/guestfs"
)

func TestRegularFile(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.begin(guestfs.Limits{})
	f := r.open("out/new.txt", sys.O_RDWR|sys.O_CREAT|sys.O_EXCL)
	_, errno := r.OpenFile("out/new.txt", sys.O_RDWR|sys.O_CREAT|sys.O_EXCL, 0o600)
	want(t, "make it again", errno, sys.EEXIST)
	if n, errno := f.Write([]byte("hello")); n != 5 || errno != 0 {
		t.Errorf("write: %d %v", n, errno)
	}
	if n, errno := f.Pwrite([]byte("J"), 0); n != 1 || errno != 0 {
		t.Errorf("pwrite: %d %v", n, errno)
	}
	if at, errno := f.Seek(-3, io.SeekCurrent); at != 2 || errno != 0 {
		t.Errorf("seek: %d %v", at, errno)
	}
	buf := make([]byte, 10)
	if n, errno := f.Read(buf); string(buf[:n]) != "llo" || errno != 0 {
		t.Errorf("read %q %v", buf[:n], errno)
	}
	if n, errno := f.Read(buf); n != 0 || errno != 0 {
		t.Errorf("at the end: %d %v", n, errno)
	}
	if n, errno := f.Pread(buf, 1); string(buf[:n]) != "ello" || errno != 0 {
		t.Errorf("pread %q %v", buf[:n], errno)
	}
	want(t, "truncate", f.Truncate(2), 0)
	want(t, "sync", f.Sync(), 0)
	want(t, "datasync", f.Datasync(), 0)
	if got := r.read("out/new.txt"); got != "Je" {
		t.Errorf("got %q", got)
	}
	for what, errno := range map[string]sys.Errno{
		"pread": second(f.Pread(buf, -1)), "pwrite": second(f.Pwrite(buf, -1)), "truncate": f.Truncate(-1),
		"seek": second(f.Seek(-1, io.SeekStart)), "whence": second(f.Seek(0, 3)), "negative whence": second(f.Seek(0, -1)),
	} {
		want(t, what, errno, sys.EINVAL)
	}
	only := r.open("out/new.txt", sys.O_WRONLY|sys.O_TRUNC)
	want(t, "read what is open for writing", second(only.Read(buf)), sys.EBADF)
	want(t, "pread", second(only.Pread(buf, 0)), sys.EBADF)
	if st, errno := f.Stat(); st.Size != 0 || errno != 0 {
		t.Errorf("emptied: %+v %v", st, errno)
	}
	_, errno = r.OpenFile("out/new.txt", sys.O_RDWR|sys.O_WRONLY, 0o600)
	want(t, "no way to open", errno, sys.EINVAL)
	_, errno = r.OpenFile("out/new.txt/", sys.O_RDONLY, 0o600)
	want(t, "a file as a directory", errno, sys.ENOTDIR)
	_, errno = r.OpenFile("out/new.txt", sys.O_RDONLY|sys.O_DIRECTORY, 0o600)
	want(t, "a file as a directory", errno, sys.ENOTDIR)
	_, errno = r.OpenFile("out/gone", sys.O_RDWR, 0o600)
	want(t, "what is not there", errno, sys.ENOENT)
}

func TestAppend(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.begin(guestfs.Limits{})
	f, other := r.open("out/old.txt", sys.O_RDWR|sys.O_APPEND|sys.O_CREAT), r.open("out/old.txt", sys.O_WRONLY|sys.O_APPEND)
	for _, f := range []sys.File{f, other, f} {
		want(t, "write", second(f.Write([]byte("+"))), 0)
	}
	if got := r.read("out/old.txt"); got != "old+++" {
		t.Errorf("got %q", got)
	}
	want(t, "pwrite", second(f.Pwrite([]byte("x"), 0)), sys.ENOTSUP)
	want(t, "set what is set", f.SetAppend(true), 0)
	want(t, "unset", f.SetAppend(false), sys.ENOTSUP)
	if !f.IsAppend() || r.open("out/old.txt", sys.O_RDWR).IsAppend() {
		t.Error("IsAppend is wrong")
	}
}

func TestDirectories(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.begin(guestfs.Limits{})
	for _, p := range []string{"out/z", "out/z/y/", "out/a"} {
		want(t, "mkdir "+p, r.Mkdir(p, 0o700), 0)
	}
	for what, c := range map[string]struct{ got, want sys.Errno }{
		"mkdir of a file":            {r.Mkdir("out/old.txt", 0o700), sys.EEXIST},
		"mkdir in a file":            {r.Mkdir("out/old.txt/x", 0o700), sys.ENOTDIR},
		"mkdir in nothing":           {r.Mkdir("out/no/x", 0o700), sys.ENOENT},
		"rmdir of one that is full":  {r.Rmdir("out/z"), sys.ENOTEMPTY},
		"rmdir of a file":            {r.Rmdir("out/old.txt"), sys.ENOTDIR},
		"unlink of a directory":      {r.Unlink("out/a"), sys.EISDIR},
		"file over directory":        {r.Rename("out/old.txt", "out/a"), sys.EISDIR},
		"directory over file":        {r.Rename("out/a", "out/old.txt"), sys.ENOTDIR},
		"directory into itself":      {r.Rename("out/z", "out/z/y/x"), sys.EINVAL},
		"unlink of nothing":          {r.Unlink("out/no"), sys.ENOENT},
		"open for writing":           {second(r.OpenFile("out/a", sys.O_RDWR, 0o600)), sys.EISDIR},
		"make a file over directory": {second(r.OpenFile("out/a", sys.O_RDONLY|sys.O_CREAT, 0o600)), sys.EISDIR},
	} {
		want(t, what, c.got, c.want)
	}
	want(t, "rename", r.Rename("out/z", "out/a/b"), 0)
	want(t, "rename over a file", r.Rename("out/old.txt", "out/d/e.txt"), 0)
	want(t, "rmdir", r.Rmdir("out/a/b/y/"), 0)
	want(t, "unlink of a link", r.Unlink("out/good"), 0)
	if got := r.list("out/a") + " " + r.list("out/d") + " " + r.read("out/d/e.txt"); got != "b/ e.txt old" {
		t.Errorf("got %s", got)
	}
	if got := r.list("data"); got != "a.txt absolute@ b/ dangling@ etc@ far@ folder@ good@ here@ inside_and_out@ loop@ new@ parent@ ping@ pipe? pong@ proc@ root@ up@" {
		t.Errorf("got %s", got)
	}
}

func TestListing(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.begin(guestfs.Limits{})
	d := r.open("out/d", sys.O_RDONLY)
	must(t, os.WriteFile(filepath.Join(r.dir, "flows/out/d/f"), nil, 0o600))
	if got := listOf(t, d, 1); got != "e.txt" {
		t.Errorf("first %s", got)
	}
	must(t, os.WriteFile(filepath.Join(r.dir, "flows/out/d/g"), nil, 0o600))
	if got := listOf(t, d, 100); got != "f" {
		t.Errorf("a listing changes meanwhile: %s", got)
	}
	if got := listOf(t, d, 1); got != "" {
		t.Errorf("after the end: %s", got)
	}
	want(t, "seek", second(d.Seek(0, io.SeekStart)), 0)
	if got := listOf(t, d, -1); got != "e.txt f g" {
		t.Errorf("again: %s", got)
	}
	want(t, "seek elsewhere", second(d.Seek(1, io.SeekStart)), sys.EINVAL)
	want(t, "read", second(d.Read(nil)), sys.EISDIR)
	want(t, "sync", d.Sync(), 0)
	root := r.open("/", sys.O_RDONLY)
	want(t, "sync of the root", root.Datasync(), 0)
	if st, errno := root.Stat(); !st.Mode.IsDir() || errno != 0 {
		t.Errorf("%+v %v", st, errno)
	}
}

// TestNumbersFollowFromPaths compares two machines, so to speak.
func TestNumbersFollowFromPaths(t *testing.T) {
	t.Parallel()
	seen := map[uint64]string{}
	a, b := newRig(t), newRig(t)
	a.begin(guestfs.Limits{})
	b.begin(guestfs.Limits{})
	for _, p := range []string{"/", "data", "data/a.txt", "data/b", "data/b/c.txt", "out", "out/old.txt"} {
		st, errno := a.Stat(p)
		want(t, "stat "+p, errno, 0)
		other, _ := b.Stat(p)
		other.Atim, other.Mtim, other.Ctim = st.Atim, st.Mtim, st.Ctim
		f := a.open(p, sys.O_RDONLY)
		open, errno := f.Stat()
		ino, _ := f.Ino()
		dev, _ := f.Dev()
		if st != other || st != open || errno != 0 || ino != st.Ino || dev != st.Dev || st.Nlink != 1 || seen[ino] != "" {
			t.Errorf("%s: %+v, elsewhere %+v, open %+v, also %q", p, st, other, open, seen[ino])
		}
		if st.Mode.IsDir() && st.Size != 0 {
			t.Errorf("%s has a size: %d", p, st.Size)
		}
		seen[ino] = p
	}
	found, _ := a.open("data", sys.O_RDONLY).Readdir(1)
	if seen[found[0].Ino] != "data/a.txt" {
		t.Errorf("the listing has other inodes: %v", found)
	}
	link, errno := a.Lstat("data/good")
	if errno != 0 || link.Size != 5 || link.Mode.IsRegular() {
		t.Errorf("%+v %v", link, errno)
	}
	if slash, errno := a.Stat("data/b/"); errno != 0 || seen[slash.Ino] != "data/b" {
		t.Errorf("with a slash: %+v %v", slash, errno)
	}
}
