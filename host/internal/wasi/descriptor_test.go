package wasi

import (
	"bytes"
	"strings"
	"testing"
)

func TestDescriptorsAreTheLowestFree(t *testing.T) {
	t.Parallel()
	g := newGuest(t, &Process{FS: newMemFS("/a")})
	open := func(want uint32) {
		t.Helper()
		if got := g.open("a", 0, rightRead); got != want {
			t.Errorf("opened as %d, want %d", got, want)
		}
	}
	open(4)
	open(5)
	open(6)
	g.want(0, "fd_close", 5)
	g.want(ebadf, "fd_close", 5)
	g.want(0, "fd_close", 0)
	open(0)
	open(5)
	open(7)
}

func TestRenumber(t *testing.T) {
	t.Parallel()
	var stdout, stderr bytes.Buffer
	files := newMemFS("/a", "/dir/", "/dir/b")
	g := newGuest(t, &Process{FS: files, Stdout: &stdout, Stderr: &stderr, MaxFiles: 6})
	g.put(atData, "text")
	g.put(atVectors, uint32(atData), uint32(4))

	g.want(0, "fd_renumber", 2, 1) // stderr over stdout
	g.want(0, "fd_write", 1, atVectors, 1, atResult)
	g.want(ebadf, "fd_write", 2, atVectors, 1, atResult)
	if stdout.Len() > 0 || stderr.String() != "text" {
		t.Errorf("stdout %q, stderr %q", &stdout, &stderr)
	}

	g.want(0, "fd_renumber", 3, 9) // the preopen to the highest number
	g.want(0, "fd_prestat_get", 9, atResult)
	g.want(ebadf, "fd_prestat_get", 3, atResult)
	ptr, n := g.path(atPath, "a")
	g.want(0, "path_open", 9, 0, ptr, n, 0, rightRead, 0, 0, atResult)
	if fd := g.uint32(atResult); fd != 2 {
		t.Errorf("opened as %d, want 2", fd)
	}
	g.want(0, "fd_renumber", 2, 9) // closes the preopen
	g.want(ebadf, "path_open", 9-1, 0, ptr, n, 0, rightRead, 0, 0, atResult)
	g.want(enotdir, "path_open", 9, 0, ptr, n, 0, rightRead, 0, 0, atResult)

	g.want(0, "fd_renumber", 9, 9)
	g.want(0, "fd_read", 9, atVectors, 1, atResult)
	g.want(ebadf, "fd_renumber", 5, 9)
	for _, to := range []uint64{10, 1 << 31, 1<<32 - 1} {
		g.want(ebadf, "fd_renumber", 9, to)
	}
}

func TestClosingFreesWhatRenumberingOverwrites(t *testing.T) {
	t.Parallel()
	files := newMemFS("/a", "/b")
	p := &Process{FS: files, MaxFiles: 2}
	g := newGuest(t, p)
	for range 10 {
		from, to := g.open("a", 0, rightRead), g.open("b", 0, rightRead)
		g.want(0, "fd_renumber", uint64(from), uint64(to))
		g.want(0, "fd_close", uint64(to))
		if files.open != 0 {
			t.Fatalf("%d files are open", files.open)
		}
	}
	if open := p.Close(); open != 0 {
		t.Errorf("%d left open", open)
	}
}

func TestTooManyFiles(t *testing.T) {
	t.Parallel()
	for limit, want := range map[int]int{0: 64, 3: 3, -1: 0} {
		files := newMemFS("/a")
		p := &Process{FS: files, MaxFiles: limit}
		g := newGuest(t, p)
		for fd := range uint64(3) {
			g.want(0, "fd_close", fd) // makes no room: it is files that are counted
		}
		for range want {
			g.open("a", 0, rightRead)
		}
		ptr, n := g.path(atPath, "a")
		g.want(emfile, "path_open", 3, 0, ptr, n, 0, rightRead, 0, 0, atResult)
		if files.open != want {
			t.Errorf("%d files are open, want %d", files.open, want)
		}
		if open := p.Close(); open != want || files.open != 0 {
			t.Errorf("%d files left open, %d still are; want %d and 0", open, files.open, want)
		}
		g.want(ebadf, "path_open", 3, 0, ptr, n, 0, rightRead, 0, 0, atResult)
		g.want(ebadf, "fd_renumber", 4, 5)
		if open := p.Close(); open != 0 {
			t.Errorf("closed twice: %d left open", open)
		}
	}
}

func TestCloseCountsNeitherStdioNorThePreopen(t *testing.T) {
	t.Parallel()
	files := newMemFS()
	p := &Process{FS: files}
	g := newGuest(t, p)
	g.want(0, "fd_filestat_get", 3, atResult) // opens it
	if open := p.Close(); open != 0 || files.open != 0 {
		t.Errorf("%d left open, %d still are", open, files.open)
	}
	if open := new(Process).Close(); open != 0 {
		t.Errorf("%d left open by nobody", open)
	}
}

// A guest that spoils its descriptors spoils those of no other call of the same
// instance.
func TestStateBelongsToTheCall(t *testing.T) {
	t.Parallel()
	g := newGuest(t, nil)
	g.put(atData, "text")
	g.put(atVectors, uint32(atData), uint32(4))
	for range 3 {
		var stdout bytes.Buffer
		p := &Process{Stdout: &stdout, Stdin: strings.NewReader("in"), FS: newMemFS("/a")}
		g.ctx = withProcess(t.Context(), p)
		g.want(0, "fd_write", 1, atVectors, 1, atResult)
		if stdout.String() != "text" {
			t.Fatalf("stdout is %q", &stdout)
		}
		for fd := range uint64(4) {
			if fd == 3 {
				g.open("a", 0, rightRead)
			}
			g.want(0, "fd_close", fd)
			g.want(ebadf, "fd_close", fd)
		}
		g.want(ebadf, "fd_write", 1, atVectors, 1, atResult)
		p.Close()
	}
}
