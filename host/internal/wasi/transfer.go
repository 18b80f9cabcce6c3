package wasi

import (
	"encoding/binary"
	"io"

	"github.com/tetratelabs/wazero/experimental/sys"
)

// Bounds of one read or write, which nothing can interrupt: buffers may overlap,
// so the guest's memory does not bound their sum. Guests take a short count for
// what it is, as POSIX allows it everywhere.
const (
	maxVectors  = 1024
	maxTransfer = 64 << 20 // bytes
)

const vectorSize = 8 // address and length

func (p *Process) fdRead(m memory, a []uint64) errno {
	file, e := p.file(uint32(a[0]))
	if e != 0 {
		return e
	}
	return p.transfer(m, uint32(a[1]), uint32(a[2]), uint32(a[3]), file.Read)
}

func (p *Process) fdWrite(m memory, a []uint64) errno {
	file, e := p.file(uint32(a[0]))
	if e != 0 {
		return e
	}
	return p.transfer(m, uint32(a[1]), uint32(a[2]), uint32(a[3]), file.Write)
}

func (p *Process) fdPread(m memory, a []uint64) errno {
	file, e := p.file(uint32(a[0]))
	if e != 0 {
		return e
	}
	return p.transfer(m, uint32(a[1]), uint32(a[2]), uint32(a[4]), from(int64(a[3]), file.Pread))
}

func (p *Process) fdPwrite(m memory, a []uint64) errno {
	file, e := p.file(uint32(a[0]))
	if e != 0 {
		return e
	}
	return p.transfer(m, uint32(a[1]), uint32(a[2]), uint32(a[4]), from(int64(a[3]), file.Pwrite))
}

// from moves buffers one behind the other, beginning at an offset in a file.
func from(offset int64, move func([]byte, int64) (int, sys.Errno)) func([]byte) (int, sys.Errno) {
	return func(b []byte) (int, sys.Errno) {
		if offset < 0 {
			return 0, sys.EINVAL
		}
		n, e := move(b, offset)
		offset += int64(n)
		return n, e
	}
}

// transfer has each of the guest's buffers moved, until one is not moved wholly,
// and reports to the guest how many bytes it moved.
func (p *Process) transfer(m memory, vectors, count, result uint32, move func([]byte) (int, sys.Errno)) errno {
	list, e := m.vectors(vectors, count)
	if e != 0 {
		return e
	}
	if _, e := m.view(result, 4); e != 0 {
		return e
	}
	total := 0
	for len(list) > 0 && total < maxTransfer {
		// What was read may have overwritten the list: look again.
		b, e := m.view(vector(list))
		if e != 0 {
			break
		}
		list = list[vectorSize:]
		b = b[:min(len(b), maxTransfer-total)]
		n, me := p.inPieces(b, move)
		total += max(n, 0)
		if me != 0 && total == 0 {
			return transferError(me)
		}
		if me != 0 || n < len(b) {
			break
		}
	}
	return m.putUint32(result, uint32(total))
}

// inPieces moves a buffer step by step, until a step is not done wholly.
func (p *Process) inPieces(b []byte, move func([]byte) (int, sys.Errno)) (total int, e sys.Errno) {
	if len(b) <= maxPiece {
		return move(b)
	}
	for len(b) > 0 {
		n, e := move(b[:min(len(b), maxPiece)])
		if e != 0 && total > 0 {
			return total, 0 // the next transfer meets it again
		}
		total += max(n, 0)
		if e != 0 || n < min(len(b), maxPiece) {
			return total, e
		}
		b = b[n:]
		p.pause()
	}
	return total, 0
}

// transferError reports that a file cannot be read or written as POSIX does.
func transferError(e sys.Errno) errno {
	if e == sys.ENOSYS {
		return ebadf
	}
	return errnoOf(e)
}

// vectors gives the list of a guest's buffers, all of which are in its memory,
// without those beyond the most that are looked at.
func (m memory) vectors(ptr, count uint32) ([]byte, errno) {
	list, e := m.view(ptr, uint64(count)*vectorSize)
	if e != 0 {
		return nil, e
	}
	list = list[:min(len(list), maxVectors*vectorSize)]
	for rest := list; len(rest) > 0; rest = rest[vectorSize:] {
		if _, e := m.view(vector(rest)); e != 0 {
			return nil, e
		}
	}
	return list, 0
}

// vector decodes the first buffer of a list.
func vector(list []byte) (ptr uint32, length uint64) {
	return binary.LittleEndian.Uint32(list), uint64(binary.LittleEndian.Uint32(list[4:]))
}

func (p *Process) fdSeek(m memory, a []uint64) errno {
	return p.seek(m, uint32(a[0]), int64(a[1]), uint32(a[2]), uint32(a[3]))
}

func (p *Process) fdTell(m memory, a []uint64) errno {
	return p.seek(m, uint32(a[0]), 0, io.SeekCurrent, uint32(a[1]))
}

// seek refuses directories: their position belongs to fd_readdir.
func (p *Process) seek(m memory, fd uint32, offset int64, whence, result uint32) errno {
	d, e := p.lookup(fd)
	switch {
	case e != 0:
		return e
	case d.isDirectory():
		return eisdir
	case whence > io.SeekEnd:
		return einval
	}
	if _, e := m.view(result, 8); e != 0 {
		return e
	}
	position, se := d.file.Seek(offset, int(whence))
	if se != 0 {
		return errnoOf(se)
	}
	return m.putUint64(result, uint64(position))
}
