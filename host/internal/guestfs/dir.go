package guestfs

import (
	"cmp"
	"errors"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"

	"github.com/tetratelabs/wazero/experimental/sys"
	stat "github.com/tetratelabs/wazero/sys"
)

// batch is how many directory entries are read at once.
const batch = 1024

// dir is an open directory. Its entries are read as a whole when the guest asks
// for the first: sorting needs them all, and a listing that changes meanwhile
// would be another one on every machine.
type dir struct {
	sys.DirFile
	fs     *FS
	path   string
	file   *os.File // nil for one that leads to mounts
	closed bool

	listed  bool
	entries []sys.Dirent
	next    int
}

// Dev is the same for all files.
func (d *dir) Dev() (uint64, sys.Errno) { return device, 0 }

// Ino follows from the path under which the directory was opened.
func (d *dir) Ino() (stat.Inode, sys.Errno) { return inode(d.path), 0 }

// Stat describes the directory.
func (d *dir) Stat() (stat.Stat_t, sys.Errno) {
	switch {
	case d.closed:
		return stat.Stat_t{}, sys.EBADF
	case d.file == nil:
		return leadStat(d.path), 0
	}
	info, err := d.file.Stat()
	if err != nil {
		return stat.Stat_t{}, errnoOf(err)
	}
	return statOf(d.path, info), 0
}

// Seek goes back to the first entry; a directory has no other positions.
func (d *dir) Seek(offset position, whence int) (int64, sys.Errno) {
	switch {
	case d.closed:
		return 0, sys.EBADF
	case offset != 0 || whence != io.SeekStart:
		return 0, sys.EINVAL
	}
	d.forget()
	return 0, 0
}

// Readdir gives the next n entries in the order of their names, without "." and
// "..", which wazero adds.
func (d *dir) Readdir(n int) ([]sys.Dirent, sys.Errno) {
	switch {
	case d.closed:
		return nil, sys.EBADF
	case d.fs.stopped():
		return nil, errStopped
	}
	if !d.listed {
		if errno := d.list(); errno != 0 {
			d.forget()
			return nil, errno
		}
	}
	rest := d.entries[d.next:]
	if n > 0 && n < len(rest) {
		rest = rest[:n]
	}
	d.next += len(rest)
	return rest, 0
}

// list reads the entries.
func (d *dir) list() sys.Errno {
	d.listed = true
	if d.file == nil {
		for _, name := range d.fs.below(d.path) {
			if errno := d.add(name, fs.ModeDir); errno != 0 {
				return errno
			}
		}
		return 0
	}
	if _, err := d.file.Seek(0, io.SeekStart); err != nil {
		return errnoOf(err)
	}
	for {
		found, err := d.file.ReadDir(batch)
		for _, e := range found {
			if errno := d.add(e.Name(), kindOf(e.Type())); errno != 0 {
				return errno
			}
		}
		switch {
		case errors.Is(err, io.EOF):
			slices.SortFunc(d.entries, func(a, b sys.Dirent) int { return cmp.Compare(a.Name, b.Name) })
			return 0
		case err != nil:
			return errnoOf(err)
		case d.fs.stopped():
			return errStopped
		}
	}
}

func (d *dir) add(name string, kind fs.FileMode) sys.Errno {
	if d.fs.entries >= d.fs.limits.Entries {
		return d.fs.reached("%d directory entries read at a time", d.fs.limits.Entries)
	}
	d.fs.entries++
	d.entries = append(d.entries, sys.Dirent{Name: name, Type: kind, Ino: inode(path.Join(d.path, name))})
	return 0
}

// forget lets go of the entries: the next Readdir reads them again.
func (d *dir) forget() {
	d.fs.entries -= len(d.entries)
	d.listed, d.entries, d.next = false, nil, 0
}

// Sync waits until the directory's entries are on disk.
func (d *dir) Sync() sys.Errno {
	switch {
	case d.closed:
		return sys.EBADF
	case d.fs.stopped():
		return errStopped
	case d.file == nil:
		return 0
	}
	return errnoOf(d.file.Sync())
}

// Datasync is Sync.
func (d *dir) Datasync() sys.Errno { return d.Sync() }

// Utimens sets the times of what is now at the directory's path.
func (d *dir) Utimens(atim, mtim int64) sys.Errno {
	if d.closed {
		return sys.EBADF
	}
	return d.fs.Utimens(d.path, atim, mtim)
}

// Close closes the directory.
func (d *dir) Close() sys.Errno { return d.fs.close(d) }

func (d *dir) ofHost() bool { return d.file != nil }

func (d *dir) release() error {
	d.forget()
	d.closed = true
	if d.file == nil {
		return nil
	}
	file := d.file
	d.file = nil
	return file.Close()
}
