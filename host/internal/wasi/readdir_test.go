package wasi

import (
	"encoding/binary"
	"fmt"
	"io/fs"
	"slices"
	"testing"

	"github.com/tetratelabs/wazero/experimental/sys"
)

// dirent is a directory entry as the guest sees it.
type dirent struct {
	next uint64
	name string
	kind uint8
}

// entries decodes those that the buffer holds wholly.
func entries(b []byte) (list []dirent) {
	for len(b) >= direntSize {
		n := int(binary.LittleEndian.Uint32(b[16:]))
		if len(b) < direntSize+n {
			break
		}
		list = append(list, dirent{binary.LittleEndian.Uint64(b), string(b[direntSize : direntSize+n]), b[20]})
		b = b[direntSize+n:]
	}
	return list
}

// readdir calls fd_readdir once.
func (g *guest) readdir(fd, size, cookie uint64) (list []dirent, full bool) {
	g.t.Helper()
	g.want(0, "fd_readdir", fd, atData, size, cookie, atResult)
	used := uint64(g.uint32(atResult))
	return entries(g.memory()[atData : atData+used]), used == size
}

// readAll reads a directory as a C library does: with what comes after the last
// entry that was whole, until the buffer is not full.
func (g *guest) readAll(fd, size uint64) (all []dirent) {
	g.t.Helper()
	for cookie, full := uint64(0), true; full; {
		var list []dirent
		list, full = g.readdir(fd, size, cookie)
		if len(list) == 0 && full {
			g.t.Fatalf("a buffer of %d bytes has no entry", size)
		}
		for _, d := range list {
			cookie = d.next
		}
		all = append(all, list...)
	}
	return all
}

// newDirectory has a directory of n files, with names of different lengths.
func newDirectory(t testing.TB, n int) (*guest, *memFS, []dirent) {
	files := newMemFS("/dir/")
	want := []dirent{{1, ".", filetypeDirectory}, {2, "..", filetypeDirectory}}
	for i := range n {
		name := fmt.Sprintf("%05d%0*d", i, i%50+1, 0)
		files.add("/dir/"+name, &memNode{mode: 0o600})
		want = append(want, dirent{uint64(i) + 3, name, filetypeRegular})
	}
	return newGuest(t, &Process{FS: files}), files, want
}

func TestReaddirWithAnyBuffer(t *testing.T) {
	t.Parallel()
	for _, n := range []int{0, 1, readChunk - 1, readChunk, readChunk + 1, 3*readChunk + 7} {
		g, _, want := newDirectory(t, n)
		fd := uint64(g.open("dir", openDirectory, rightRead))
		for _, size := range []uint64{80, 81, 100, 123, 500, 4096, 0x4000} {
			if got := g.readAll(fd, size); !slices.Equal(got, want) {
				t.Fatalf("%d files, buffer of %d bytes: %d entries", n, size, len(got))
			}
		}
		g.want(einval, "fd_readdir", fd, atData, direntSize-1, 0, atResult)
	}
}

func TestReaddirFromEveryCookie(t *testing.T) {
	t.Parallel()
	g, _, want := newDirectory(t, 300)
	fd := uint64(g.open("dir", openDirectory, rightRead))
	for i := range 3 * len(want) { // 61 is prime to 302: forward and back, over all chunks
		cookie := i * 61 % len(want)
		list, _ := g.readdir(fd, 100, uint64(cookie))
		if len(list) == 0 || !slices.Equal(list, want[cookie:cookie+len(list)]) {
			t.Fatalf("from the cookie %d: %v, want %v", cookie, list, want[cookie])
		}
	}
	if list, full := g.readdir(fd, 100, uint64(len(want))); len(list) > 0 || full {
		t.Errorf("behind the end: %v", list)
	}
	g.want(enoent, "fd_readdir", fd, atData, 100, uint64(len(want))+1, atResult)
	g.want(enoent, "fd_readdir", fd, atData, 100, 1<<64-1, atResult)
}

func TestReaddirRewindsToWhatIsNew(t *testing.T) {
	t.Parallel()
	g, files, want := newDirectory(t, 2)
	fd := uint64(g.open("dir", openDirectory, rightRead))
	if got := g.readAll(fd, 4096); !slices.Equal(got, want) {
		t.Fatal(got)
	}
	files.add("/dir/zzz", &memNode{mode: fs.ModeDir})
	if list, _ := g.readdir(fd, 4096, 4); len(list) > 0 {
		t.Errorf("without rewinding: %v", list)
	}
	if got := g.readAll(fd, 4096); !slices.Equal(got, append(want, dirent{5, "zzz", filetypeDirectory})) {
		t.Error(got)
	}
}

// Files can be removed while their directory is read, as rm -r does.
func TestReaddirWhileRemoving(t *testing.T) {
	t.Parallel()
	g, files, want := newDirectory(t, 1000)
	fd := uint64(g.open("dir", openDirectory, rightRead))
	removed := 0
	for cookie, full := uint64(0), true; full; {
		var list []dirent
		list, full = g.readdir(fd, 300, cookie)
		for _, d := range list {
			cookie = d.next
			if d.kind == filetypeRegular {
				ptr, n := g.path(atPath, d.name)
				g.want(0, "path_unlink_file", fd, ptr, n)
				removed++
			}
		}
	}
	if removed != len(want)-2 || len(files.children("/dir")) > 0 {
		t.Errorf("%d removed, %d are left", removed, len(files.children("/dir")))
	}
}

func TestReaddirWritesNoFurtherThanTheBuffer(t *testing.T) {
	t.Parallel()
	g, _, _ := newDirectory(t, 5)
	fd := uint64(g.open("dir", openDirectory, rightRead))
	for size := uint64(direntSize); size < 200; size++ {
		g.put(atData+int(size), "guard")
		g.want(0, "fd_readdir", fd, atData, size, 0, atResult)
		if got := g.text(atData+int(size), 5); got != "guard" {
			t.Fatalf("a buffer of %d bytes was overrun with %q", size, got)
		}
	}
}

// However large the guest says its buffer is, the FS is asked for few entries at
// a time.
func TestReaddirAsksForFewEntries(t *testing.T) {
	t.Parallel()
	files := newMemFS("/a")
	f, _ := files.OpenFile("/", sys.O_RDONLY, 0)
	p := &Process{FS: files}
	g := newGuest(t, p)
	p.descriptors().slots[3].file = f
	g.want(0, "fd_readdir", 3, 0, 2<<16-8, 0, 2<<16-8)
	if asked := f.(*memFile).asked; asked != readChunk {
		t.Errorf("asked for %d entries", asked)
	}
}
