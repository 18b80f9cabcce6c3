package guestfs

import (
	"errors"
	"io/fs"
	"os"
	"path"

	"github.com/tetratelabs/wazero/experimental/sys"
)

// newEntry is what a new file or directory counts as written, a block: empty
// ones fill a disk too.
const newEntry = 4096

// access is what a file is opened for.
type access struct {
	flag                   int // of package os, without those below
	read, write            bool
	create, excl, truncate bool
	dir, noFollow          bool
}

func accessOf(flag sys.Oflag) (access, sys.Errno) {
	has := func(f sys.Oflag) bool { return flag&f != 0 }
	a := access{
		create: has(sys.O_CREAT), excl: has(sys.O_EXCL), truncate: has(sys.O_TRUNC),
		dir: has(sys.O_DIRECTORY), noFollow: has(sys.O_NOFOLLOW),
	}
	switch flag & (sys.O_RDWR | sys.O_WRONLY) {
	case sys.O_RDONLY:
		a.flag, a.read = os.O_RDONLY, true
	case sys.O_RDWR:
		a.flag, a.read, a.write = os.O_RDWR, true, true
	case sys.O_WRONLY:
		a.flag, a.write = os.O_WRONLY, true
	default:
		return a, sys.EINVAL
	}
	if a.truncate && !a.write {
		return a, sys.EINVAL
	}
	if a.write && has(sys.O_APPEND) {
		a.flag |= os.O_APPEND
	}
	if has(sys.O_SYNC) || has(sys.O_DSYNC) {
		a.flag |= os.O_SYNC
	}
	return a, 0
}

// changes reports whether the file is opened to change something.
func (a access) changes() bool { return a.write || a.create }

// OpenFile opens a regular file or a directory.
func (f *FS) OpenFile(p string, flag sys.Oflag, _ fs.FileMode) (sys.File, sys.Errno) {
	a, errno := accessOf(flag)
	if errno != 0 {
		return nil, errno
	}
	at, errno := f.find(p)
	switch {
	case errno == sys.ENOENT && a.create && f.leads(path.Dir(at.path)):
		return nil, sys.EROFS
	case errno != 0:
		return nil, errno
	}
	switch {
	case at.mount == nil:
		return f.openLead(at, a)
	case a.changes() && !at.mount.write:
		return nil, sys.EROFS
	}
	if errno := f.roomForFile(); errno != 0 {
		return nil, errno
	}
	return f.openAt(at, a)
}

// openLead opens a directory that leads to mounts.
func (f *FS) openLead(at place, a access) (sys.File, sys.Errno) {
	if a.changes() {
		return nil, sys.EISDIR
	}
	return f.hold(&dir{fs: f, path: at.path}), 0
}

// openAt looks before it opens: merely opening a device can have an effect.
func (f *FS) openAt(at place, a access) (sys.File, sys.Errno) {
	look := at.mount.root.Stat
	if a.noFollow {
		look = at.mount.root.Lstat
	}
	info, err := look(at.rel)
	switch {
	case a.create && errors.Is(err, fs.ErrNotExist):
		if errno := f.charge(newEntry); errno != 0 {
			return nil, errno
		}
		a.flag |= os.O_CREATE
		if a.excl {
			a.flag |= os.O_EXCL
		}
		return f.openFile(at, a)
	case err != nil:
		return nil, errnoOf(err)
	case a.create && a.excl:
		return nil, sys.EEXIST
	case info.Mode()&fs.ModeSymlink != 0:
		return nil, sys.ELOOP
	case info.IsDir():
		return f.openDir(at, a)
	case a.dir:
		return nil, sys.ENOTDIR
	case !info.Mode().IsRegular():
		return nil, errKind
	}
	return f.openFile(at, a)
}

// openFile opens a regular file. It may have become something else since it was
// looked at, so it is opened without waiting and emptied only afterwards.
func (f *FS) openFile(at place, a access) (sys.File, sys.Errno) {
	file, err := at.mount.root.OpenFile(at.rel, a.flag|nonblock, 0o666)
	if err != nil {
		return nil, errnoOf(err)
	}
	info, err := file.Stat()
	if err == nil && info.Mode().IsRegular() && a.truncate {
		err = file.Truncate(0)
	}
	if err != nil || !info.Mode().IsRegular() {
		_ = file.Close() // it was not used
		if err != nil {
			return nil, errnoOf(err)
		}
		return nil, errKind
	}
	return f.hold(&regular{fs: f, path: at.path, file: file, access: a}), 0
}

func (f *FS) openDir(at place, a access) (sys.File, sys.Errno) {
	if a.changes() {
		return nil, sys.EISDIR
	}
	file, err := at.mount.root.OpenFile(at.rel, os.O_RDONLY|nonblock, 0)
	if err != nil {
		return nil, errnoOf(err)
	}
	if info, err := file.Stat(); err != nil || !info.IsDir() {
		_ = file.Close() // it was only read
		return nil, sys.ENOTDIR
	}
	return f.hold(&dir{fs: f, path: at.path, file: file}), 0
}
