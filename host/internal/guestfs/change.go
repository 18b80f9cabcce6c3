package guestfs

import (
	"io/fs"
	"path/filepath"
	"time"

	"github.com/tetratelabs/wazero/experimental/sys"
)

// Mkdir makes a directory. As with files, the umask of the host decides who
// else may use it.
func (f *FS) Mkdir(p string, _ fs.FileMode) sys.Errno {
	if _, errno := f.Lstat(p); errno == 0 {
		return sys.EEXIST // rather than EROFS, as programs expect that make sure of a directory
	}
	at, errno := f.findChange(p)
	if errno == 0 {
		errno = f.charge(newEntry)
	}
	if errno != 0 {
		return errno
	}
	return errnoOf(at.mount.root.Mkdir(at.rel, 0o777))
}

// Rename moves a file or directory within a grant, over another file too.
func (f *FS) Rename(from, to string) sys.Errno {
	old, errno := f.findChange(from)
	if errno != 0 {
		return errno
	}
	at, errno := f.findChange(to)
	if errno != 0 {
		return errno
	}
	if old.mount != at.mount {
		return errCross
	}
	root := at.mount.root
	moved, err := root.Lstat(old.rel)
	if err != nil {
		return errnoOf(err)
	}
	if there, err := root.Lstat(at.rel); err == nil && there.IsDir() && !moved.IsDir() {
		return sys.EISDIR
	}
	return errnoOf(root.Rename(old.rel, at.rel))
}

// Rmdir removes an empty directory.
func (f *FS) Rmdir(p string) sys.Errno { return f.remove(p, true) }

// Unlink removes a file or a link.
func (f *FS) Unlink(p string) sys.Errno { return f.remove(p, false) }

func (f *FS) remove(p string, dir bool) sys.Errno {
	at, errno := f.findChange(p)
	if errno != 0 {
		return errno
	}
	info, err := at.mount.root.Lstat(at.rel)
	switch {
	case err != nil:
		return errnoOf(err)
	case dir && !info.IsDir():
		return sys.ENOTDIR
	case !dir && info.IsDir():
		return sys.EISDIR
	}
	return errnoOf(at.mount.root.Remove(at.rel))
}

// Utimens sets the times of what a path leads to, in nanoseconds since 1970.
func (f *FS) Utimens(p string, atim, mtim int64) sys.Errno {
	at, errno := f.find(p)
	switch {
	case errno != 0:
		return errno
	case at.mount == nil || !at.mount.write:
		return sys.EROFS
	}
	return errnoOf(at.mount.root.Chtimes(at.rel, timeOf(atim), timeOf(mtim)))
}

// timeOf is zero for a time that is to stay as it is, which is what os makes of
// a zero time.
func timeOf(nanos int64) time.Time {
	if nanos == sys.UTIME_OMIT {
		return time.Time{}
	}
	return time.Unix(0, nanos)
}

// Readlink gives the text of a link, wherever it leads.
func (f *FS) Readlink(p string) (string, sys.Errno) {
	at, errno := f.find(p)
	switch {
	case errno != 0:
		return "", errno
	case at.mount == nil:
		return "", sys.EINVAL
	}
	text, err := at.mount.root.Readlink(at.rel)
	return filepath.ToSlash(text), errnoOf(err)
}

// Link is refused: a file under two names is one that no grant describes.
func (f *FS) Link(string, string) sys.Errno { return sys.EPERM }

// Symlink is refused: programs of the host that follow links are not as careful
// as this one.
func (f *FS) Symlink(string, string) sys.Errno { return sys.EPERM }
