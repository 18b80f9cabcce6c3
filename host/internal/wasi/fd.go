package wasi

import (
	"encoding/binary"

	"github.com/tetratelabs/wazero/experimental/sys"
)

// Flags of a descriptor, fdflags.
const (
	fdAppend uint16 = 1 << iota
	fdDsync
	fdNonblock
	fdRsync
	fdSync
)

// fdAdvise takes note of nothing: files need no advice.
func (p *Process) fdAdvise(_ memory, a []uint64) errno {
	const last = 5 // noreuse
	if _, e := p.lookup(uint32(a[0])); e != 0 {
		return e
	}
	if advice := uint8(a[3]); advice > last {
		return einval
	}
	return 0
}

// fdAllocate makes a file at least so large; the space is not reserved.
func (p *Process) fdAllocate(_ memory, a []uint64) errno {
	offset, length := int64(a[1]), int64(a[2])
	file, e := p.file(uint32(a[0]))
	if e != 0 {
		return e
	}
	if offset < 0 || length < 0 || offset+length < 0 {
		return einval
	}
	stat, se := file.Stat()
	if se != 0 {
		return errnoOf(se)
	}
	if stat.Size >= offset+length {
		return 0
	}
	return errnoOf(file.Truncate(offset + length))
}

func (p *Process) fdDatasync(_ memory, a []uint64) errno {
	file, e := p.file(uint32(a[0]))
	if e != 0 {
		return e
	}
	return errnoOf(file.Datasync())
}

func (p *Process) fdSync(_ memory, a []uint64) errno {
	file, e := p.file(uint32(a[0]))
	if e != 0 {
		return e
	}
	return errnoOf(file.Sync())
}

func (p *Process) fdFdstatGet(m memory, a []uint64) errno {
	buf, e := m.view(uint32(a[1]), 24)
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
	var flags uint16
	if file.IsAppend() {
		flags |= fdAppend
	}
	if f, ok := file.(sys.PollableFile); ok && f.IsNonblock() {
		flags |= fdNonblock
	}
	kind := filetype(stat.Mode)
	base, inheriting := rights(kind)
	binary.LittleEndian.PutUint16(buf[0:], uint16(kind))
	binary.LittleEndian.PutUint16(buf[2:], flags)
	binary.LittleEndian.PutUint32(buf[4:], 0)
	binary.LittleEndian.PutUint64(buf[8:], base)
	binary.LittleEndian.PutUint64(buf[16:], inheriting)
	return 0
}

// fdFdstatSetFlags sets whether a regular file is written to at its end, and
// passes non-blocking mode on to a file that knows it.
func (p *Process) fdFdstatSetFlags(_ memory, a []uint64) errno {
	flags := uint16(a[1])
	if flags&(fdDsync|fdRsync|fdSync) != 0 {
		return einval
	}
	d, e := p.lookup(uint32(a[0]))
	if e != 0 {
		return e
	}
	if d.kind == preopen {
		return eisdir
	}
	if e := setNonblock(d, flags&fdNonblock != 0); e != 0 {
		return e
	}
	if stat, se := d.file.Stat(); se != 0 || !stat.Mode.IsRegular() {
		return 0
	}
	return errnoOf(d.file.SetAppend(flags&fdAppend != 0))
}

func setNonblock(d *descriptor, enable bool) errno {
	if f, ok := d.file.(sys.PollableFile); ok {
		return errnoOf(f.SetNonblock(enable))
	}
	switch {
	case d.isDirectory():
		return eisdir
	case enable:
		return enosys
	}
	return 0
}

func (p *Process) fdPrestatGet(m memory, a []uint64) errno {
	d, e := p.lookup(uint32(a[0]))
	if e != 0 {
		return e
	}
	if d.kind != preopen {
		return ebadf
	}
	// The low half is the tag of a directory, zero.
	return m.putUint64(uint32(a[1]), uint64(len(d.path))<<32)
}

func (p *Process) fdPrestatDirName(m memory, a []uint64) errno {
	ptr, length := uint32(a[1]), uint32(a[2])
	d, e := p.lookup(uint32(a[0]))
	if e != 0 {
		return e
	}
	if d.kind != preopen {
		return ebadf
	}
	if uint64(length) > uint64(len(d.path)) {
		return enametoolong
	}
	buf, e := m.view(ptr, uint64(length))
	copy(buf, d.path)
	return e
}
