package wasi

import (
	"encoding/binary"
	"io/fs"

	"github.com/tetratelabs/wazero/experimental/sys"
	wasys "github.com/tetratelabs/wazero/sys"
)

// Types of files, filetype.
const (
	filetypeUnknown         uint8 = 0
	filetypeBlockDevice     uint8 = 1
	filetypeCharacterDevice uint8 = 2
	filetypeDirectory       uint8 = 3
	filetypeRegular         uint8 = 4
	filetypeSymlink         uint8 = 7
)

func filetype(mode fs.FileMode) uint8 {
	switch {
	case mode.IsRegular():
		return filetypeRegular
	case mode.IsDir():
		return filetypeDirectory
	case mode&fs.ModeSymlink != 0:
		return filetypeSymlink
	case mode&fs.ModeCharDevice != 0:
		return filetypeCharacterDevice
	case mode&fs.ModeDevice != 0:
		return filetypeBlockDevice
	}
	return filetypeUnknown
}

const filestatSize = 64

func putFilestat(buf []byte, stat *wasys.Stat_t) {
	for i, v := range [...]uint64{
		stat.Dev, stat.Ino, uint64(filetype(stat.Mode)), stat.Nlink, uint64(stat.Size),
		uint64(stat.Atim), uint64(stat.Mtim), uint64(stat.Ctim),
	} {
		binary.LittleEndian.PutUint64(buf[8*i:], v)
	}
}

func (p *Process) fdFilestatGet(m memory, a []uint64) errno {
	buf, e := m.view(uint32(a[1]), filestatSize)
	if e != 0 {
		return e
	}
	file, e := p.file(uint32(a[0]))
	if e != 0 {
		return e
	}
	stat, se := file.Stat()
	if se != 0 {
		return errnoOf(se)
	}
	putFilestat(buf, &stat)
	return 0
}

func (p *Process) fdFilestatSetSize(_ memory, a []uint64) errno {
	file, e := p.file(uint32(a[0]))
	if e != 0 {
		return e
	}
	size := int64(a[1])
	if size < 0 {
		return einval
	}
	return errnoOf(file.Truncate(size))
}

func (p *Process) fdFilestatSetTimes(_ memory, a []uint64) errno {
	file, e := p.file(uint32(a[0]))
	if e != 0 {
		return e
	}
	atim, mtim, e := p.times(int64(a[1]), int64(a[2]), uint16(a[3]))
	if e != 0 {
		return e
	}
	return errnoOf(file.Utimens(atim, mtim))
}

func (p *Process) pathFilestatGet(m memory, a []uint64) errno {
	flags := uint32(a[1])
	t, e := p.resolve(m, uint32(a[0]), uint32(a[2]), uint32(a[3]))
	if e != 0 {
		return e
	}
	stat, e := p.stat(t, flags&lookupFollow != 0)
	if e != 0 {
		return e
	}
	buf, e := m.view(uint32(a[4]), filestatSize)
	if e != 0 {
		return e
	}
	putFilestat(buf, &stat)
	return 0
}

// stat describes the file at a path. It follows a link if the path ends with a slash.
func (p *Process) stat(t target, follow bool) (wasys.Stat_t, errno) {
	lookup := p.FS.Lstat
	if follow || t.slash {
		lookup = p.FS.Stat
	}
	stat, e := lookup(t.path)
	if e == 0 && t.slash && !stat.Mode.IsDir() {
		e = sys.ENOTDIR
	}
	return stat, errnoOf(e)
}

// pathFilestatSetTimes follows a link at the end of the path or refuses it: the
// FS has no way to set a link's own times.
func (p *Process) pathFilestatSetTimes(m memory, a []uint64) errno {
	flags := uint32(a[1])
	atim, mtim, e := p.times(int64(a[4]), int64(a[5]), uint16(a[6]))
	if e != 0 {
		return e
	}
	t, e := p.resolve(m, uint32(a[0]), uint32(a[2]), uint32(a[3]))
	if e != 0 {
		return e
	}
	stat, e := p.stat(t, flags&lookupFollow != 0)
	switch {
	case e != 0:
		return e
	case stat.Mode&fs.ModeSymlink != 0:
		return enotsup
	}
	return errnoOf(p.FS.Utimens(t.path, atim, mtim))
}

// Which times to set, fstflags.
const (
	setAtim uint16 = 1 << iota
	setAtimNow
	setMtim
	setMtimNow
)

// times turns what the guest gave into what an FS takes. Both times are the same
// instant when both are to be that of the clock.
func (p *Process) times(atim, mtim int64, flags uint16) (int64, int64, errno) {
	if flags&(setAtim|setAtimNow) == setAtim|setAtimNow || flags&(setMtim|setMtimNow) == setMtim|setMtimNow {
		return 0, 0, einval
	}
	var now int64
	if flags&(setAtimNow|setMtimNow) != 0 {
		if !p.hasClock(clockRealtime) {
			return 0, 0, einval
		}
		now = p.now(clockRealtime)
	}
	return choose(flags&setAtim != 0, atim, flags&setAtimNow != 0, now),
		choose(flags&setMtim != 0, mtim, flags&setMtimNow != 0, now), 0
}

func choose(set bool, given int64, fromClock bool, now int64) int64 {
	switch {
	case set:
		return given
	case fromClock:
		return now
	}
	return sys.UTIME_OMIT
}
