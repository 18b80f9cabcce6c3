package wasi

import (
	"cmp"
	"time"
)

// Clocks of preview 1. It has two more, of the CPU time, that nobody offers.
const (
	clockRealtime = iota
	clockMonotonic
	clocks
)

func (p *Process) clockResGet(m memory, a []uint64) errno {
	if !p.hasClock(uint32(a[0])) {
		return einval
	}
	return m.putUint64(uint32(a[1]), uint64(cmp.Or(p.Resolution, defaultResolution)))
}

func (p *Process) clockTimeGet(m memory, a []uint64) errno {
	id, result := uint32(a[0]), uint32(a[2]) // between them: how old the answer may be
	if !p.hasClock(id) {
		return einval
	}
	return m.putUint64(result, uint64(p.now(id)))
}

func (p *Process) hasClock(id uint32) bool {
	return id == clockRealtime && p.Walltime != nil || id == clockMonotonic && p.Nanotime != nil
}

// now reads a clock that the process has, in nanoseconds.
func (p *Process) now(id uint32) int64 {
	if id == clockMonotonic {
		return p.Nanotime()
	}
	sec, nsec := p.Walltime()
	return sec*int64(time.Second) + int64(nsec)
}
