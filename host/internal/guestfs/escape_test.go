package guestfs_test

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tetratelabs/wazero/experimental/sys"

	"github.com/flowhost/flowhost/host/internal/guestfs"
	"github.com/flowhost/flowhost/run"
)

// ways are paths that lead to what is not granted.
func ways(dir string) []string {
	paths := []string{
		"..", "../secret.txt", "data/..", "data/../secret.txt", "data/../../outside/secret.txt", "data/b/../../../secret.txt",
		dir + "/outside/secret.txt", "data/" + dir + "/outside/secret.txt", "data//../secret.txt", "out/./../secret.txt", "data\x00/a.txt",
		strings.Repeat("a/", 3000), strings.Repeat("../", 50) + "etc/passwd",
	}
	for name := range links(dir) {
		if name == "here" {
			continue
		}
		for _, folder := range []string{"data/", "out/"} {
			paths = append(paths, folder+name, folder+name+"/", folder+name+"/secret.txt", folder+name+"/outside/secret.txt", folder+"here/here/"+name)
		}
	}
	slices.Sort(paths)
	return paths
}

func TestNoWayOut(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	outside, flowSecret := tree(t, filepath.Join(r.dir, "outside")), tree(t, filepath.Join(r.dir, "flows/data"))
	for _, p := range ways(r.dir) {
		r.begin(guestfs.Limits{})
		for _, flag := range []sys.Oflag{
			sys.O_RDONLY, sys.O_RDWR, sys.O_WRONLY | sys.O_CREAT, sys.O_RDWR | sys.O_CREAT | sys.O_EXCL, sys.O_RDWR | sys.O_TRUNC,
			sys.O_RDONLY | sys.O_DIRECTORY, sys.O_RDONLY | sys.O_NOFOLLOW, sys.O_RDWR | sys.O_APPEND | sys.O_CREAT,
		} {
			r.tryFile(p, flag)
		}
		if st, errno := r.Stat(p); errno == 0 && st.Size == int64(len(secret)) {
			t.Errorf("stat %s: %+v", p, st)
		}
		_ = r.Mkdir(p, 0o700)
		_ = r.Mkdir(p+"/made", 0o700)
		_ = r.Utimens(p, 0, 0)
		_ = r.Rename("out/old.txt", p)
		_ = r.Rename(p, "out/taken")
		_ = r.Unlink(p)
		_ = r.Rmdir(p)
		r.Close()
		if tree(t, filepath.Join(r.dir, "outside")) != outside {
			t.Fatalf("%s: outside was changed", p)
		}
		if tree(t, filepath.Join(r.dir, "flows/data")) != flowSecret {
			t.Fatalf("%s: what may only be read was changed", p)
		}
	}
	if got := tree(t, filepath.Join(r.dir, "flows/secret.txt")); !strings.Contains(got, secret) {
		t.Errorf("beside the granted folders: %s", got)
	}
}

// tryFile opens a path and fails the test when what it holds is not granted.
func (r *rig) tryFile(p string, flag sys.Oflag) {
	r.t.Helper()
	f, errno := r.OpenFile(p, flag, 0o600)
	if errno != 0 {
		return
	}
	defer f.Close()
	buf := make([]byte, 4096)
	if n, _ := f.Read(buf); strings.Contains(string(buf[:n]), secret) {
		r.t.Fatalf("open %s with %x reads the secret", p, flag)
	}
	if dir, _ := f.IsDir(); !dir {
		_, _ = f.Write([]byte("x"))
		return
	}
	found, _ := f.Readdir(100)
	for _, e := range found {
		if e.Name == unseen || e.Name == "passwd" {
			r.t.Fatalf("%s lists %s", p, e.Name)
		}
	}
}

// TestGrantsAreNotMovedByGuests lets a guest that may write to a directory put a
// link where the next call's grant should be.
func TestGrantsAreNotMovedByGuests(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.begin(guestfs.Limits{})
	want(t, "rename", r.Rename("out/d", "out/e"), 0)
	want(t, "rename", r.Rename("out/folder", "out/d"), 0)
	r.Close()
	grant := run.FileGrant{Folder: filepath.Join(r.dir, "flows"), Path: "out/d", Guest: "/d"}
	if _, err := guestfs.Open(nil, []run.FileGrant{grant}, guestfs.Limits{}); err == nil {
		t.Error("a link was followed to what is not granted")
	}
}

// TestSpecialFiles must end: opening a pipe waits for its other end.
func TestSpecialFiles(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.begin(guestfs.Limits{})
	for _, flag := range []sys.Oflag{sys.O_RDONLY, sys.O_RDONLY | sys.O_NONBLOCK} {
		_, errno := r.OpenFile("data/pipe", flag, 0o600)
		want(t, "open a pipe", errno, sys.EACCES)
	}
	for _, flag := range []sys.Oflag{sys.O_WRONLY, sys.O_RDWR, sys.O_RDWR | sys.O_CREAT | sys.O_TRUNC} {
		_, errno := r.OpenFile("out/pipe", flag, 0o600)
		want(t, "open a pipe for writing", errno, sys.EACCES)
	}
	_, errno := r.OpenFile("data/pipe", sys.O_RDONLY|sys.O_DIRECTORY, 0o600)
	want(t, "open a pipe as a directory", errno, sys.ENOTDIR)
	st, errno := r.Stat("data/pipe")
	if errno != 0 || st.Mode.IsRegular() || st.Mode.IsDir() {
		t.Errorf("stat: %v %v", st.Mode, errno)
	}
	_, errno = r.OpenFile("data/loop", sys.O_RDONLY, 0o600)
	want(t, "open a loop", errno, sys.ELOOP)
	_, errno = r.OpenFile("data/good", sys.O_RDONLY|sys.O_NOFOLLOW, 0o600)
	want(t, "open a link itself", errno, sys.ELOOP)
	if got := r.read("data/good"); got != "alpha" {
		t.Errorf("a link inside gives %q", got)
	}
}

// TestStop lets the call be over: no operation begins after that.
func TestStop(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	over := false
	files, err := guestfs.Open(func() bool { return over }, r.grants(), guestfs.Limits{})
	must(t, err)
	r.FS = files
	f, dir := r.open("out/old.txt", sys.O_RDWR), r.open("data", sys.O_RDONLY)
	over = true
	buf := []byte("x")
	for what, errno := range map[string]sys.Errno{
		"read": second(f.Read(buf)), "pread": second(f.Pread(buf, 0)), "write": second(f.Write(buf)), "pwrite": second(f.Pwrite(buf, 0)),
		"truncate": f.Truncate(0), "sync": f.Sync(), "seek": second(f.Seek(0, 0)), "readdir": second(dir.Readdir(1)), "sync a directory": dir.Sync(),
		"open": second(r.OpenFile("data/a.txt", 0, 0)), "stat": second(r.Stat("data")), "mkdir": r.Mkdir("out/x", 0), "unlink": r.Unlink("out/old.txt"),
		"rename": r.Rename("out/old.txt", "out/z"), "utimens": r.Utimens("out/old.txt", 0, 0), "readlink": second(r.Readlink("out/good")),
	} {
		want(t, what, errno, sys.EIO)
	}
	want(t, "close", f.Close(), 0)
	want(t, "close", dir.Close(), 0)
	if usage := r.Close(); usage.Open != 0 {
		t.Errorf("%+v", usage)
	}
}

func TestTimes(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.begin(guestfs.Limits{})
	at := time.Date(2026, 3, 29, 1, 30, 0, 5000, time.UTC).UnixNano()
	want(t, "utimens", r.Utimens("out/old.txt", 1, at), 0)
	st, errno := r.Stat("out/old.txt")
	if errno != 0 || st.Mtim != at || st.Atim != at || st.Ctim != at {
		t.Errorf("%+v %v", st, errno)
	}
	f := r.open("out/old.txt", sys.O_RDONLY)
	want(t, "omit", f.Utimens(at, sys.UTIME_OMIT), 0)
	if again, _ := f.Stat(); again != st {
		t.Errorf("%+v, want %+v", again, st)
	}
	dir := r.open("out/d", sys.O_RDONLY)
	want(t, "a directory's", dir.Utimens(sys.UTIME_OMIT, at), 0)
	if st, _ := dir.Stat(); st.Mtim != at {
		t.Errorf("%+v", st)
	}
}
