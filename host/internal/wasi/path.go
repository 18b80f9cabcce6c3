package wasi

import (
	"cmp"
	"io/fs"
	"path"
	"strings"
)

// maxPath is the length of paths in bytes, that of the directory they start from
// included: Linux's PATH_MAX.
const maxPath = 4096

// lookupFollow has a symbolic link at the end of a path followed.
const lookupFollow = 1

// target is where a guest's path leads.
type target struct {
	path  string // in the process's FS, clean and rooted
	self  bool   // it is the directory itself that the path starts from
	slash bool   // the guest wrote a slash at the end: it must be a directory
}

// resolve reads a path from the guest's memory. It cannot lead above the
// directory that it starts from.
func (p *Process) resolve(m memory, fd, ptr, length uint32) (target, errno) {
	raw, e := m.view(ptr, uint64(length))
	if e != 0 {
		return target{}, e
	}
	if len(raw) > maxPath {
		return target{}, enametoolong
	}
	given := string(raw)
	relative := path.Clean(given)
	if !fs.ValidPath(relative) {
		return target{}, eperm
	}
	if strings.IndexByte(relative, 0) >= 0 {
		return target{}, einval
	}
	d, e := p.lookup(fd)
	switch {
	case e != 0:
		return target{}, e
	case !d.isDirectory():
		return target{}, enotdir
	}
	t := target{path: path.Join(d.path, relative), self: relative == ".", slash: strings.HasSuffix(given, "/")}
	if len(t.path) > maxPath {
		return target{}, enametoolong
	}
	return t, 0
}

// place resolves a path at which something is to be changed: with a slash at
// its end it must not lead to a file or a link.
func (p *Process) place(m memory, fd, ptr, length uint32) (target, errno) {
	t, e := p.resolve(m, fd, ptr, length)
	if e != 0 {
		return target{}, e
	}
	return t, p.checkSlash(t)
}

func (p *Process) checkSlash(t target) errno {
	if !t.slash {
		return 0
	}
	if stat, e := p.FS.Lstat(t.path); e == 0 && !stat.Mode.IsDir() {
		return enotdir
	}
	return 0 // where there is nothing, the FS returns the error
}

func (p *Process) pathCreateDirectory(m memory, a []uint64) errno {
	t, e := p.resolve(m, uint32(a[0]), uint32(a[1]), uint32(a[2]))
	if e != 0 {
		return e
	}
	return errnoOf(p.FS.Mkdir(t.path, 0o700))
}

func (p *Process) pathRemoveDirectory(m memory, a []uint64) errno {
	t, e := p.place(m, uint32(a[0]), uint32(a[1]), uint32(a[2]))
	switch {
	case e != 0:
		return e
	case t.self:
		return einval
	}
	return errnoOf(p.FS.Rmdir(t.path))
}

func (p *Process) pathUnlinkFile(m memory, a []uint64) errno {
	t, e := p.place(m, uint32(a[0]), uint32(a[1]), uint32(a[2]))
	switch {
	case e != 0:
		return e
	case t.self:
		return eisdir
	}
	return errnoOf(p.FS.Unlink(t.path))
}

func (p *Process) pathRename(m memory, a []uint64) errno {
	from, e := p.resolve(m, uint32(a[0]), uint32(a[1]), uint32(a[2]))
	if e != 0 {
		return e
	}
	to, e := p.place(m, uint32(a[3]), uint32(a[4]), uint32(a[5]))
	if e != 0 {
		return e
	}
	from.slash = from.slash || to.slash // only a directory becomes one
	if e := p.checkSlash(from); e != 0 {
		return e
	}
	if from.self || to.self {
		return ebusy
	}
	return errnoOf(p.FS.Rename(from.path, to.path))
}

// pathLink refuses to make a link, which would be one more name for a file that
// only one grant may cover.
func (p *Process) pathLink(m memory, a []uint64) errno {
	if _, e := p.resolve(m, uint32(a[0]), uint32(a[2]), uint32(a[3])); e != 0 {
		return e
	}
	if _, e := p.resolve(m, uint32(a[4]), uint32(a[5]), uint32(a[6])); e != 0 {
		return e
	}
	return eperm
}

// pathSymlink refuses to make a link, by which others could be led anywhere.
func (p *Process) pathSymlink(m memory, a []uint64) errno {
	text, length, fd, newLength := uint32(a[0]), uint32(a[1]), uint32(a[2]), uint32(a[4])
	d, e := p.lookup(fd)
	switch {
	case e != 0:
		return e
	case !d.isDirectory():
		return enotdir
	case length == 0 || newLength == 0:
		return einval
	}
	if _, e := m.view(text, uint64(length)); e != 0 {
		return e
	}
	if _, e := p.resolve(m, fd, uint32(a[3]), newLength); e != 0 {
		return e
	}
	return eperm
}

func (p *Process) pathReadlink(m memory, a []uint64) errno {
	length, buf, size, result := uint32(a[2]), uint32(a[3]), uint32(a[4]), uint32(a[5])
	if length == 0 || size == 0 {
		return einval
	}
	t, e := p.resolve(m, uint32(a[0]), uint32(a[1]), length)
	if e != 0 {
		return e
	}
	if t.slash { // it leads through the link, to what is none
		_, e := p.stat(t, true)
		return cmp.Or(e, einval)
	}
	text, re := p.FS.Readlink(t.path)
	switch {
	case re != 0:
		return errnoOf(re)
	case uint64(len(text)) > uint64(size):
		return erange
	}
	to, e := m.view(buf, uint64(len(text)))
	if e != 0 {
		return e
	}
	copy(to, text)
	return m.putUint32(result, uint32(len(text)))
}
