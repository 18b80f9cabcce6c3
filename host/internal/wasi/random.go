package wasi

import "io"

// randomGet fills the guest's buffer in place, which its memory bounds.
func (p *Process) randomGet(m memory, a []uint64) errno {
	buf, e := m.view(uint32(a[0]), uint64(uint32(a[1])))
	switch {
	case e != 0:
		return e
	case p.Random == nil:
		return enosys
	}
	if _, err := io.ReadFull(p.Random, buf); err != nil {
		return eio
	}
	return 0
}
