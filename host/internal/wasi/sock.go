package wasi

// noSocket answers for a function of sockets, of which there are none.
func (p *Process) noSocket(memory, []uint64) errno { return ebadf }

func (p *Process) sockSend(m memory, a []uint64) errno {
	if flags := uint32(a[3]); flags != 0 {
		return enotsup // none are defined
	}
	return p.noSocket(m, a)
}
