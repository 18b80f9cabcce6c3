package wasi

import (
	"cmp"
	"path"
	"slices"
	"strings"
	"testing"
)

func TestPathsAreCleanAndRooted(t *testing.T) {
	t.Parallel()
	files := newMemFS("/a", "/dir/", "/dir/sub/", "/dir/sub/b")
	g := newGuest(t, &Process{FS: files})
	dir := uint64(g.open("dir/./sub/..", openDirectory, rightRead))
	for _, c := range []struct {
		fd   uint64
		path string
		want string
	}{
		{3, "a", "/a"}, {3, "./a", "/a"}, {3, "dir//sub/../sub/b", "/dir/sub/b"}, {3, ".", "/"}, {3, "dir/..", "/"}, {3, "dir/", "/dir"},
		{dir, "sub/b", "/dir/sub/b"}, {dir, ".", "/dir"}, {dir, "", "/dir"}, {dir, "./", "/dir"}, {dir, "sub/..", "/dir"},
	} {
		ptr, n := g.path(atPath, c.path)
		g.want(0, "path_filestat_get", c.fd, 1, ptr, n, atResult)
		if got := files.paths[len(files.paths)-1]; got != c.want {
			t.Errorf("%q became %q, want %q", c.path, got, c.want)
		}
	}
	for _, p := range files.paths {
		if !strings.HasPrefix(p, "/") || path.Clean(p) != p {
			t.Errorf("the FS was asked for %q", p)
		}
	}
}

func TestPathsLeadNowhereElse(t *testing.T) {
	t.Parallel()
	files := newMemFS("/a", "/dir/", "/dir/b")
	g := newGuest(t, &Process{FS: files})
	dir := uint64(g.open("dir", openDirectory, rightRead))
	long := strings.Repeat("a", maxPath-4)
	for p, want := range map[string]errno{
		"..": eperm, "../a": eperm, "../dir/b": eperm, "b/../../a": eperm, "/": eperm, "/a": eperm, "/dir/b": eperm, "x\xff": eperm,
		"b\x00": einval, long: enametoolong, long + "aaaaa": enametoolong,
	} {
		asked := len(files.paths)
		ptr, n := g.path(0x1c000, p)
		g.want(want, "path_filestat_get", dir, 1, ptr, n, atResult)
		g.want(want, "path_open", dir, 1, ptr, n, uint64(openCreate), rightWrite, 0, 0, atResult)
		g.want(want, "path_create_directory", dir, ptr, n)
		g.want(want, "path_remove_directory", dir, ptr, n)
		g.want(want, "path_unlink_file", dir, ptr, n)
		g.want(want, "path_readlink", dir, ptr, n, atData, 10, atResult)
		g.want(want, "path_filestat_set_times", dir, 1, ptr, n, 0, 0, 0)
		g.want(want, "path_rename", dir, ptr, n, dir, ptr, n)
		if rest := files.paths[asked:]; len(rest) > 0 {
			t.Errorf("the FS was asked for %q", rest)
		}
	}
}

func TestLinksCannotBeMade(t *testing.T) {
	t.Parallel()
	g := newGuest(t, &Process{FS: newMemFS("/a", "/dir/")})
	from, n := g.path(atPath, "a")
	to, m := g.path(atPath2, "link")
	g.want(eperm, "path_symlink", from, n, 3, to, m)
	g.want(eperm, "path_link", 3, 0, from, n, 3, to, m)
	g.want(einval, "path_symlink", from, 0, 3, to, m)
	g.want(ebadf, "path_symlink", from, n, 9, to, m)
	g.want(enotdir, "path_symlink", from, n, 1, to, m)
}

func TestSlashAtTheEnd(t *testing.T) {
	t.Parallel()
	files := newMemFS("/file", "/dir/", "/dir/b", "/tofile->file", "/todir->dir")
	g := newGuest(t, &Process{FS: files})
	at := func(name string, want errno, p string, before []uint64, after ...uint64) {
		t.Helper()
		ptr, n := g.path(atPath, p)
		g.want(want, name, slices.Concat(before, []uint64{ptr, n}, after)...)
	}
	for p, want := range map[string]errno{"file/": enotdir, "tofile/": enotdir, "dir/": 0, "todir/": 0, "none/": enoent} {
		at("path_filestat_get", want, p, []uint64{3, 0}, atResult)
		at("path_filestat_set_times", want, p, []uint64{3, 0}, 0, 0, 0)
		at("path_open", want, p, []uint64{3, 1}, 0, rightRead, 0, 0, atResult)
		at("path_open", want, p, []uint64{3, 0}, 0, rightRead, 0, 0, atResult) // a slash follows by itself
		at("path_readlink", cmp.Or(want, einval), p, []uint64{3}, atData, 100, atResult)
		at("path_open", eisdir, p, []uint64{3, 1}, uint64(openCreate), rightWrite, 0, 0, atResult)
	}
	at("path_open", enotdir, "file/", []uint64{3, 1}, uint64(openTruncate), rightWrite, 0, 0, atResult)
	if len(files.nodes["/file"].data) == 0 {
		t.Error("a file was truncated as a directory")
	}
	for p, want := range map[string]errno{"file/": enotdir, "tofile/": enotdir, "todir/": enotdir, "none/": enoent} {
		at("path_unlink_file", want, p, []uint64{3})
		at("path_remove_directory", want, p, []uint64{3})
		at("path_rename", want, p, []uint64{3}, 3, atPath, uint64(len(p)))
	}
	at("path_unlink_file", eisdir, "dir/", []uint64{3})
	at("path_create_directory", eexist, "file/", []uint64{3})
	at("path_create_directory", 0, "made/", []uint64{3})
	at("path_remove_directory", 0, "made/", []uint64{3})

	to, m := g.path(atPath2, "new/")
	at("path_rename", enotdir, "file", []uint64{3}, 3, to, m)
	at("path_rename", 0, "dir", []uint64{3}, 3, to, m)
	if files.nodes["/new/b"] == nil {
		t.Error("the directory was not moved")
	}
}

func TestTheDirectoryItself(t *testing.T) {
	t.Parallel()
	files := newMemFS("/dir/")
	g := newGuest(t, &Process{FS: files})
	dir := uint64(g.open("dir", openDirectory, rightRead))
	a, n := g.path(atPath, ".")
	b, m := g.path(atPath2, "other")
	for _, fd := range []uint64{3, dir} {
		g.want(einval, "path_remove_directory", fd, a, n)
		g.want(eisdir, "path_unlink_file", fd, a, n)
		g.want(ebusy, "path_rename", fd, a, n, 3, b, m)
		g.want(eexist, "path_create_directory", fd, a, n)
	}
	if files.nodes["/"] == nil || files.nodes["/dir"] == nil {
		t.Error("it is gone")
	}
}

func TestTimes(t *testing.T) {
	t.Parallel()
	files := newMemFS("/a", "/link->a")
	g := newGuest(t, &Process{FS: files, Walltime: func() (int64, int32) { return 9, 1 }})
	node := files.nodes["/a"]
	set := func(want errno, p string, follow, atim, mtim uint64, flags uint16) {
		t.Helper()
		ptr, n := g.path(atPath, p)
		g.want(want, "path_filestat_set_times", 3, follow, ptr, n, atim, mtim, uint64(flags))
	}
	set(0, "a", 0, 5, 6, setAtim)
	set(0, "link", 1, 7, 8, setMtim)
	if node.atim != 5 || node.mtim != 8 {
		t.Errorf("times %d and %d, want 5 and 8", node.atim, node.mtim)
	}
	set(0, "a", 1, 0, 0, setAtimNow|setMtimNow)
	if node.atim != 9_000_000_001 || node.mtim != node.atim {
		t.Errorf("times %d and %d, want the clock's", node.atim, node.mtim)
	}
	set(enotsup, "link", 0, 1, 1, setAtim)
	set(einval, "a", 0, 1, 1, setAtim|setAtimNow)
	set(einval, "a", 0, 1, 1, setMtim|setMtimNow)

	g = newGuest(t, &Process{FS: files}) // there is no clock
	set(einval, "a", 0, 1, 1, setMtimNow)
	set(0, "a", 0, 1, 1, setMtim)
}
