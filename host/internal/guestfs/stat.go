package guestfs

import (
	"hash/fnv"
	"io/fs"
	"os"

	"github.com/tetratelabs/wazero/experimental/sys"
	stat "github.com/tetratelabs/wazero/sys"
)

// device is the number of the only device that guests see.
const device = 1

// Stat describes what a path leads to.
func (f *FS) Stat(p string) (stat.Stat_t, sys.Errno) { return f.stat(p, (*os.Root).Stat) }

// Lstat is Stat, but describes a link itself.
func (f *FS) Lstat(p string) (stat.Stat_t, sys.Errno) { return f.stat(p, (*os.Root).Lstat) }

func (f *FS) stat(p string, look func(*os.Root, string) (fs.FileInfo, error)) (stat.Stat_t, sys.Errno) {
	at, errno := f.find(p)
	switch {
	case errno != 0:
		return stat.Stat_t{}, errno
	case at.mount == nil:
		return leadStat(at.path), 0
	}
	info, err := look(at.mount.root, at.rel)
	if err != nil {
		return stat.Stat_t{}, errnoOf(err)
	}
	return statOf(at.path, info), 0
}

// leadStat describes a directory that is not the host's.
func leadStat(p string) stat.Stat_t {
	return stat.Stat_t{Dev: device, Ino: inode(p), Mode: fs.ModeDir | 0o555, Nlink: 1}
}

// statOf describes a file of the host at a path of the guest. What depends on
// the host's file system is left out: a directory's size, the count of links.
func statOf(p string, info fs.FileInfo) stat.Stat_t {
	changed := info.ModTime().UnixNano()
	st := stat.Stat_t{
		Dev: device, Ino: inode(p), Mode: kindOf(info.Mode()) | info.Mode().Perm(), Nlink: 1,
		Atim: changed, Mtim: changed, Ctim: changed,
	}
	if !info.IsDir() {
		st.Size = info.Size()
	}
	return st
}

// kindOf is a mode's type, where all that cannot be opened is one type.
func kindOf(mode fs.FileMode) fs.FileMode {
	switch kind := mode.Type(); kind {
	case 0, fs.ModeDir, fs.ModeSymlink:
		return kind
	}
	return fs.ModeIrregular
}

// inode is a number for a path. It is never 0, which is no inode.
func inode(p string) stat.Inode {
	h := fnv.New64a()
	_, _ = h.Write([]byte(p)) // a hash takes everything
	return max(h.Sum64(), 1)
}
