package wasi

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"
)

type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(p []byte) (int, error) { return f(p) }

func TestWriteTellsWhatWasWrittenBeforeAnError(t *testing.T) {
	t.Parallel()
	room := 6
	full := writerFunc(func(p []byte) (int, error) {
		n := min(room, len(p))
		room -= n
		if n < len(p) {
			return n, errors.New("full")
		}
		return n, nil
	})
	g := newGuest(t, &Process{Stdout: full})
	g.put(atVectors, uint32(atData), uint32(4), uint32(atData), uint32(4))
	g.want(0, "fd_write", 1, atVectors, 2, atResult)
	if n := g.uint32(atResult); n != 6 {
		t.Errorf("%d bytes written, want 6", n)
	}
	g.want(eio, "fd_write", 1, atVectors, 2, atResult)
}

func TestReadStopsAtAShortOne(t *testing.T) {
	t.Parallel()
	g := newGuest(t, &Process{Stdin: io.MultiReader(strings.NewReader("abcdef"), strings.NewReader("gh"))})
	g.put(atVectors, uint32(atData), uint32(4), uint32(atData+4), uint32(4), uint32(atData+8), uint32(4))
	for _, want := range []string{"abcdef", "gh", ""} {
		g.want(0, "fd_read", 0, atVectors, 3, atResult)
		if got := g.text(atData, int(g.uint32(atResult))); got != want {
			t.Errorf("read %q, want %q", got, want)
		}
	}
}

// The list of buffers lies in the guest's memory, where what is read can replace
// it while it is in use.
func TestReadOverItsOwnList(t *testing.T) {
	t.Parallel()
	g := newGuest(t, &Process{Stdin: strings.NewReader(strings.Repeat("\xff", 100))})
	g.put(atVectors, uint32(atVectors), uint32(24), uint32(atData), uint32(4), uint32(atData), uint32(4))
	g.want(0, "fd_read", 0, atVectors, 3, atResult)
	if n := g.uint32(atResult); n != 24 {
		t.Errorf("%d bytes read, want 24: the second buffer is outside of memory by now", n)
	}
}

func TestTransferIsBounded(t *testing.T) {
	t.Parallel()
	written := 0
	g := newGuest(t, &Process{Stdout: writerFunc(func(p []byte) (int, error) { written += len(p); return len(p), nil })})
	for i := range 2000 { // 2000 × 120 KiB, all in the same place
		g.put(8*i, uint32(0), uint32(120<<10))
	}
	g.want(0, "fd_write", 1, 0, 2000, 0x1fff0)
	if n := g.uint32(0x1fff0); n != maxTransfer || written != maxTransfer {
		t.Errorf("%d bytes written in one call, told %d, want %d", written, n, maxTransfer)
	}
	for i := range 2000 {
		g.put(8*i, uint32(0), uint32(1))
	}
	g.want(0, "fd_write", 1, 0, 2000, 0x1fff0)
	if n := g.uint32(0x1fff0); n != maxVectors {
		t.Errorf("%d buffers written in one call, want %d", n, maxVectors)
	}
}

func TestNothingMovesWhenABufferIsBad(t *testing.T) {
	t.Parallel()
	var stdout bytes.Buffer
	g := newGuest(t, &Process{Stdout: &stdout})
	g.put(atVectors, uint32(atData), uint32(4), uint32(2<<16), uint32(1))
	g.want(efault, "fd_write", 1, atVectors, 2, atResult)
	g.want(efault, "fd_write", 1, atVectors, 1, 2<<16)
	if stdout.Len() > 0 {
		t.Errorf("%d bytes were written", stdout.Len())
	}
}

func TestOffsets(t *testing.T) {
	t.Parallel()
	files := newMemFS("/a")
	g := newGuest(t, &Process{FS: files})
	fd := uint64(g.open("a", openCreate, rightRead|rightWrite))
	minus := func(n int64) uint64 { return uint64(-n) }
	g.put(atData, "0123456789")
	g.put(atVectors, uint32(atData), uint32(4), uint32(atData+4), uint32(6))
	g.want(0, "fd_pwrite", fd, atVectors, 2, 3, atResult)
	if got := string(files.nodes["/a"].data); got != "/a\x000123456789" {
		t.Errorf("the file holds %q", got)
	}
	g.want(0, "fd_tell", fd, atResult)
	if got := g.uint64(atResult); got != 0 {
		t.Errorf("fd_pwrite moved the offset to %d", got)
	}
	g.want(einval, "fd_pread", fd, atVectors, 2, minus(1), atResult)
	g.want(einval, "fd_pwrite", fd, atVectors, 2, minus(1), atResult)
	g.want(einval, "fd_seek", fd, minus(1), io.SeekStart, atResult)
	g.want(einval, "fd_seek", fd, 0, 3, atResult)
	g.want(0, "fd_seek", fd, minus(2), io.SeekEnd, atResult)
	if got := g.uint64(atResult); got != 11 {
		t.Errorf("the offset is %d, want 11", got)
	}
	g.want(einval, "fd_filestat_set_size", fd, minus(1))
	g.want(einval, "fd_allocate", fd, minus(1), 1)
	g.want(einval, "fd_allocate", fd, 1<<63-1, 1)
	g.want(eisdir, "fd_seek", 3, 0, 0, atResult)
}
