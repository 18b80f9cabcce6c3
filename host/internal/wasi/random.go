package wasi

import "io"

// maxPiece is the bytes that one step of a transfer moves: it can be interrupted
// between two of them, and Go's collector has its turn.
const maxPiece = 256 << 10

// randomGet fills the guest's buffer in place, which its memory bounds.
func (p *Process) randomGet(m memory, a []uint64) errno {
	buf, e := m.view(uint32(a[0]), uint64(uint32(a[1])))
	switch {
	case e != 0:
		return e
	case p.Random == nil:
		return enosys
	}
	for len(buf) > 0 {
		n := min(len(buf), maxPiece)
		if _, err := io.ReadFull(p.Random, buf[:n]); err != nil {
			return eio
		}
		buf = buf[n:]
		p.pause()
	}
	return 0
}
