package guestfs_test

import (
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"testing"

	"github.com/tetratelabs/wazero/experimental/sys"

	"github.com/flowhost/flowhost/host/internal/guestfs"
)

func TestOpenFilesAreLimited(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.begin(guestfs.Limits{})
	var open []sys.File
	for i := range 64 {
		open = append(open, r.open([]string{"data/a.txt", "data"}[i%2], sys.O_RDONLY))
	}
	_, errno := r.OpenFile("data/a.txt", sys.O_RDONLY, 0o600)
	want(t, "the 65th file", errno, sys.EIO)
	want(t, "close", open[0].Close(), 0)
	want(t, "close again", open[0].Close(), 0)
	open[0] = r.open("data/a.txt", sys.O_RDONLY)
	_, errno = r.OpenFile("out", sys.O_RDONLY, 0o600)
	want(t, "one more", errno, sys.EIO)
	root := r.open("/", sys.O_RDONLY) // is none of the host's
	want(t, "close", root.Close(), 0)
	for _, f := range open {
		want(t, "close", f.Close(), 0)
	}
	if usage := r.Close(); usage != (guestfs.Usage{Reached: "64 open files"}) {
		t.Errorf("%+v", usage)
	}
}

// TestWrittenBytesAreLimited grows files in every way there is, past the limit.
func TestWrittenBytesAreLimited(t *testing.T) {
	t.Parallel()
	const limit = 10000
	for name, c := range map[string]struct {
		grow    func(r *rig, f sys.File) sys.Errno
		atLeast int // steps that must work
	}{
		"write":    {func(_ *rig, f sys.File) sys.Errno { return second(f.Write(make([]byte, 1000))) }, 10},
		"pwrite":   {func(_ *rig, f sys.File) sys.Errno { return second(f.Pwrite(make([]byte, 1000), 0)) }, 10},
		"hole":     {func(_ *rig, f sys.File) sys.Errno { return second(f.Pwrite([]byte("x"), 1<<40)) }, 0},
		"overflow": {func(_ *rig, f sys.File) sys.Errno { return second(f.Pwrite([]byte("xy"), math.MaxInt64-1)) }, 0},
		"seek": {func(_ *rig, f sys.File) sys.Errno {
			if _, errno := f.Seek(1000, io.SeekEnd); errno != 0 {
				return errno
			}
			return second(f.Write([]byte("x")))
		}, 9},
		"truncate": {func(_ *rig, f sys.File) sys.Errno {
			if errno := f.Truncate(0); errno != 0 {
				return errno
			}
			return f.Truncate(1000)
		}, 10},
		"huge": {func(_ *rig, f sys.File) sys.Errno { return f.Truncate(math.MaxInt64) }, 0},
		"append": {func(r *rig, _ sys.File) sys.Errno {
			f := r.open("out/old.txt", sys.O_RDWR|sys.O_APPEND)
			defer f.Close()
			return second(f.Write(make([]byte, 1000)))
		}, 10},
		"files": {func(r *rig, _ sys.File) sys.Errno {
			f, errno := r.OpenFile(fmt.Sprintf("out/f%d", len(r.list("out"))), sys.O_RDWR|sys.O_CREAT, 0o600)
			if errno == 0 {
				errno = f.Close()
			}
			return errno
		}, 2},
		"directories": {func(r *rig, _ sys.File) sys.Errno { return r.Mkdir(fmt.Sprintf("out/f%d", len(r.list("out"))), 0o700) }, 2},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			r.begin(guestfs.Limits{Written: limit})
			f := r.open("out/old.txt", sys.O_RDWR)
			done, errno := 0, sys.Errno(0)
			for ; errno == 0 && done < 100; done++ {
				errno = c.grow(r, f)
			}
			if done--; done < c.atLeast || done > 10 {
				t.Errorf("%d steps were done", done)
			}
			if name != "overflow" {
				want(t, "the last", errno, sys.EIO)
			}
			want(t, "a byte of room", second(f.Pwrite([]byte("x"), 0)), map[bool]sys.Errno{true: 0, false: sys.EIO}[done*1000 < limit])
			info, err := os.Stat(filepath.Join(r.dir, "flows/out/old.txt"))
			if err != nil || info.Size() > limit+3 {
				t.Errorf("%v %v", info, err)
			}
			want(t, "close", f.Close(), 0)
			if usage := r.Close(); usage.Written > limit || name != "overflow" && usage.Reached != "10000 bytes written" {
				t.Errorf("%+v", usage)
			}
			r.begin(guestfs.Limits{}) // the next call begins again
			f = r.open("out/old.txt", sys.O_RDWR)
			want(t, "truncate", f.Truncate(64<<20-1), 0)
		})
	}
}

func TestDirectoryEntriesAreLimited(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	for i := range 3000 {
		must(t, os.WriteFile(filepath.Join(r.dir, "flows/data/b", fmt.Sprintf("%04d", i)), nil, 0o600))
	}
	r.begin(guestfs.Limits{Entries: 5000})
	first, second := r.open("data/b", sys.O_RDONLY), r.open("data/b", sys.O_RDONLY)
	found, errno := first.Readdir(0)
	if len(found) != 3001 || errno != 0 || found[17].Name != "0017" {
		t.Errorf("%d entries, %v", len(found), errno)
	}
	_, errno = second.Readdir(10)
	want(t, "too many at a time", errno, sys.EIO)
	want(t, "close", first.Close(), 0)
	if found, errno := second.Readdir(10); len(found) != 10 || errno != 0 {
		t.Errorf("%d entries, %v", len(found), errno)
	}
	want(t, "close", second.Close(), 0)
	if usage := r.Close(); usage.Reached != "5000 directory entries read at a time" || usage.Open != 0 {
		t.Errorf("%+v", usage)
	}
}

func TestReadsAreBounded(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	must(t, os.Truncate(filepath.Join(r.dir, "flows/data/a.txt"), 3<<20))
	r.begin(guestfs.Limits{})
	f := r.open("data/a.txt", sys.O_RDONLY)
	buf := make([]byte, 2<<20)
	for _, read := range []func() (int, sys.Errno){func() (int, sys.Errno) { return f.Read(buf) }, func() (int, sys.Errno) { return f.Pread(buf, 5) }} {
		if n, errno := read(); n != 1<<20 || errno != 0 {
			t.Errorf("%d bytes, %v", n, errno)
		}
	}
}
