package wasi

import (
	"io"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/tetratelabs/wazero/experimental/sys"
	wasys "github.com/tetratelabs/wazero/sys"
)

// memFS is a file system in memory that is the same in each run. It takes paths
// as wazero gives them and as this package does.
type memFS struct {
	sys.UnimplementedFS
	nodes map[string]*memNode // by clean and rooted path
	paths []string            // it was asked for, as they were given
	inode uint64
	limit int // bytes of a file
	open  int
}

type memNode struct {
	mode       fs.FileMode
	data       []byte
	link       string
	inode      uint64
	atim, mtim int64
}

// newMemFS has directories for paths that end in a slash, symbolic links for
// "path->target", and files that hold their own path.
func newMemFS(paths ...string) *memFS {
	f := &memFS{nodes: map[string]*memNode{}, limit: 1 << 20}
	f.add("/", &memNode{mode: fs.ModeDir | 0o755})
	for _, p := range paths {
		if at, link, ok := strings.Cut(p, "->"); ok {
			f.add(at, &memNode{mode: fs.ModeSymlink | 0o777, link: link})
		} else if dir, ok := strings.CutSuffix(p, "/"); ok {
			f.add(dir, &memNode{mode: fs.ModeDir | 0o755})
		} else {
			f.add(p, &memNode{mode: 0o644, data: []byte(p)})
		}
	}
	return f
}

func (f *memFS) add(p string, n *memNode) *memNode {
	f.inode++
	n.inode = f.inode
	f.nodes[path.Clean(p)] = n
	return n
}

// find gives the node at a path and the clean path. A slash at the end makes
// anything but a directory ENOTDIR.
func (f *memFS) find(p string, follow bool) (string, *memNode, sys.Errno) {
	f.paths = append(f.paths, p)
	at := path.Clean("/" + p)
	if up := f.nodes[path.Dir(at)]; up == nil {
		return at, nil, sys.ENOENT
	} else if !up.mode.IsDir() {
		return at, nil, sys.ENOTDIR
	}
	n := f.nodes[at]
	if n == nil {
		return at, nil, sys.ENOENT
	}
	slash := strings.HasSuffix(p, "/") && at != "/"
	if n.link != "" && (follow || slash) {
		at, n, _ = f.find(path.Join(path.Dir(at), n.link), false)
		if n == nil {
			return at, nil, sys.ENOENT
		}
	}
	if slash && !n.mode.IsDir() {
		return at, nil, sys.ENOTDIR
	}
	return at, n, 0
}

func (f *memFS) children(dir string) (names []string) {
	for p := range f.nodes {
		if p != "/" && path.Dir(p) == dir {
			names = append(names, path.Base(p))
		}
	}
	slices.Sort(names)
	return names
}

func (f *memFS) OpenFile(p string, flag sys.Oflag, _ fs.FileMode) (sys.File, sys.Errno) {
	at, n, e := f.find(p, flag&sys.O_NOFOLLOW == 0)
	write := flag&(sys.O_RDWR|sys.O_WRONLY) != 0
	switch {
	case e == sys.ENOENT && flag&sys.O_CREAT != 0 && f.nodes[path.Dir(at)] != nil:
		if strings.HasSuffix(p, "/") {
			return nil, sys.EISDIR
		}
		n = f.add(at, &memNode{mode: 0o600})
	case e != 0:
		return nil, e
	case flag&sys.O_CREAT != 0 && flag&sys.O_EXCL != 0:
		return nil, sys.EEXIST
	case n.link != "":
		return nil, sys.ELOOP
	case n.mode.IsDir() && (write || flag&sys.O_CREAT != 0):
		return nil, sys.EISDIR
	case !n.mode.IsDir() && flag&sys.O_DIRECTORY != 0:
		return nil, sys.ENOTDIR
	}
	if flag&sys.O_TRUNC != 0 && write {
		n.data = nil
	}
	f.open++
	return &memFile{fs: f, at: at, node: n, flag: flag}, 0
}

func (f *memFS) Lstat(p string) (wasys.Stat_t, sys.Errno) {
	_, n, e := f.find(p, false)
	return n.stat(), e
}

func (f *memFS) Stat(p string) (wasys.Stat_t, sys.Errno) {
	_, n, e := f.find(p, true)
	return n.stat(), e
}

func (f *memFS) Mkdir(p string, _ fs.FileMode) sys.Errno {
	at, _, e := f.find(strings.TrimSuffix(p, "/"), false)
	switch {
	case e == 0:
		return sys.EEXIST
	case e == sys.ENOENT && f.nodes[path.Dir(at)] != nil:
		f.add(at, &memNode{mode: fs.ModeDir | 0o700})
		return 0
	}
	return e
}

func (f *memFS) Rename(from, to string) sys.Errno {
	src, n, e := f.find(from, false)
	if e != 0 {
		return e
	}
	dst, old, e := f.find(to, false)
	switch {
	case src == dst:
		return 0
	case e == sys.ENOENT && strings.HasSuffix(to, "/") && !n.mode.IsDir():
		return sys.ENOTDIR
	case e != 0 && (e != sys.ENOENT || f.nodes[path.Dir(dst)] == nil):
		return e
	case strings.HasPrefix(dst, src+"/"):
		return sys.EINVAL
	case old != nil && old.mode.IsDir() && !n.mode.IsDir():
		return sys.EISDIR
	case old != nil && !old.mode.IsDir() && n.mode.IsDir():
		return sys.ENOTDIR
	case old != nil && len(f.children(dst)) > 0:
		return sys.ENOTEMPTY
	}
	for p, child := range f.nodes {
		if rest, ok := strings.CutPrefix(p, src); ok && (rest == "" || rest[0] == '/') {
			delete(f.nodes, p)
			f.nodes[dst+rest] = child
		}
	}
	return 0
}

func (f *memFS) Rmdir(p string) sys.Errno {
	at, n, e := f.find(p, false)
	switch {
	case e != 0:
		return e
	case !n.mode.IsDir():
		return sys.ENOTDIR
	case len(f.children(at)) > 0:
		return sys.ENOTEMPTY
	}
	delete(f.nodes, at)
	return 0
}

func (f *memFS) Unlink(p string) sys.Errno {
	at, n, e := f.find(p, false)
	switch {
	case e != 0:
		return e
	case n.mode.IsDir():
		return sys.EISDIR
	}
	delete(f.nodes, at)
	return 0
}

func (f *memFS) Readlink(p string) (string, sys.Errno) {
	_, n, e := f.find(p, false)
	if e == 0 && n.link == "" {
		e = sys.EINVAL
	}
	if e != 0 {
		return "", e
	}
	return n.link, 0
}

func (f *memFS) Utimens(p string, atim, mtim int64) sys.Errno {
	_, n, e := f.find(p, true)
	if e == 0 {
		n.touch(atim, mtim)
	}
	return e
}

func (n *memNode) touch(atim, mtim int64) {
	if atim != sys.UTIME_OMIT {
		n.atim = atim
	}
	if mtim != sys.UTIME_OMIT {
		n.mtim = mtim
	}
}

func (n *memNode) stat() wasys.Stat_t {
	if n == nil {
		return wasys.Stat_t{}
	}
	size := int64(len(n.data) + len(n.link))
	return wasys.Stat_t{Dev: 1, Ino: n.inode, Mode: n.mode, Nlink: 1, Size: size, Atim: n.atim, Mtim: n.mtim, Ctim: 7}
}

// memFile is an open file or directory of a memFS.
type memFile struct {
	sys.UnimplementedFile
	fs     *memFS
	at     string
	node   *memNode
	flag   sys.Oflag
	offset int64
	names  []string // of a directory being read
	closed bool
	asked  int // the most entries one Readdir was asked for
}

func (f *memFile) Ino() (wasys.Inode, sys.Errno)      { return f.node.inode, 0 }
func (f *memFile) IsDir() (bool, sys.Errno)           { return f.node.mode.IsDir(), 0 }
func (f *memFile) IsAppend() bool                     { return f.flag&sys.O_APPEND != 0 }
func (f *memFile) Stat() (wasys.Stat_t, sys.Errno)    { return f.node.stat(), 0 }
func (f *memFile) Utimens(atim, mtim int64) sys.Errno { f.node.touch(atim, mtim); return 0 }

func (f *memFile) SetAppend(enable bool) sys.Errno {
	f.flag &^= sys.O_APPEND
	if enable {
		f.flag |= sys.O_APPEND
	}
	return 0
}

func (f *memFile) usable(mode sys.Oflag) sys.Errno {
	switch {
	case f.node.mode.IsDir():
		return sys.EISDIR
	case f.flag&(sys.O_RDWR|sys.O_WRONLY) != mode && f.flag&sys.O_RDWR == 0:
		return sys.EBADF
	}
	return 0
}

func (f *memFile) Read(b []byte) (int, sys.Errno) {
	n, e := f.Pread(b, f.offset)
	f.offset += int64(n)
	return n, e
}

func (f *memFile) Pread(b []byte, off int64) (int, sys.Errno) {
	if e := f.usable(sys.O_RDONLY); e != 0 {
		return 0, e
	}
	if off < 0 {
		return 0, sys.EINVAL
	}
	return copy(b, f.node.data[min(off, int64(len(f.node.data))):]), 0
}

func (f *memFile) Write(b []byte) (int, sys.Errno) {
	if f.IsAppend() {
		f.offset = int64(len(f.node.data))
	}
	n, e := f.Pwrite(b, f.offset)
	f.offset += int64(n)
	return n, e
}

func (f *memFile) Pwrite(b []byte, off int64) (int, sys.Errno) {
	if e := f.usable(sys.O_WRONLY); e != 0 {
		return 0, e
	}
	if off < 0 {
		return 0, sys.EINVAL
	}
	if len(b) == 0 {
		return 0, 0
	}
	if off > int64(f.fs.limit) || off+int64(len(b)) > int64(f.fs.limit) {
		return 0, sys.EIO
	}
	if end := off + int64(len(b)); end > int64(len(f.node.data)) {
		f.node.data = append(f.node.data, make([]byte, end-int64(len(f.node.data)))...)
	}
	return copy(f.node.data[off:], b), 0
}

func (f *memFile) Truncate(size int64) sys.Errno {
	switch e := f.usable(sys.O_WRONLY); {
	case e != 0:
		return e
	case size < 0:
		return sys.EINVAL
	case size > int64(f.fs.limit):
		return sys.EIO
	}
	f.node.data = append(f.node.data[:min(size, int64(len(f.node.data)))], make([]byte, max(0, size-int64(len(f.node.data))))...)
	return 0
}

// position is int64 by another name: go vet takes each Seek(int64, int) for that of
// io.Seeker and misses its error.
type position = int64

func (f *memFile) Seek(offset position, whence int) (position, sys.Errno) {
	f.names = nil
	switch whence {
	case io.SeekStart:
	case io.SeekCurrent:
		offset += f.offset
	case io.SeekEnd:
		offset += int64(len(f.node.data))
	default:
		return 0, sys.EINVAL
	}
	if offset < 0 {
		return 0, sys.EINVAL
	}
	f.offset = offset
	return offset, 0
}

// Readdir gives the names that were there when reading began.
func (f *memFile) Readdir(n int) (entries []sys.Dirent, e sys.Errno) {
	if !f.node.mode.IsDir() {
		return nil, sys.EBADF
	}
	if f.names == nil {
		f.names = append(f.fs.children(f.at), "")
	}
	f.asked = max(f.asked, n)
	for len(entries) < n && f.names[0] != "" {
		if child := f.fs.nodes[path.Join(f.at, f.names[0])]; child != nil {
			entries = append(entries, sys.Dirent{Name: f.names[0], Type: child.mode.Type(), Ino: child.inode})
		}
		f.names = f.names[1:]
	}
	return entries, 0
}

func (f *memFile) Close() sys.Errno {
	if !f.closed {
		f.fs.open--
	}
	f.closed = true
	return 0
}
