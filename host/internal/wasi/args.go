package wasi

import "encoding/binary"

func (p *Process) argsGet(m memory, a []uint64) errno {
	return putStrings(m, uint32(a[0]), uint32(a[1]), p.Args)
}

func (p *Process) argsSizesGet(m memory, a []uint64) errno {
	return putSizes(m, uint32(a[0]), uint32(a[1]), p.Args)
}

func (p *Process) environGet(m memory, a []uint64) errno {
	return putStrings(m, uint32(a[0]), uint32(a[1]), p.Env)
}

func (p *Process) environSizesGet(m memory, a []uint64) errno {
	return putSizes(m, uint32(a[0]), uint32(a[1]), p.Env)
}

// putStrings writes each string with a NUL behind it, and where it begins.
func putStrings(m memory, pointers, text uint32, list []string) errno {
	index, e := m.view(pointers, uint64(len(list))*4)
	if e != 0 {
		return e
	}
	buf, e := m.view(text, sizeOf(list))
	if e != 0 {
		return e
	}
	at := 0
	for i, s := range list {
		binary.LittleEndian.PutUint32(index[4*i:], text+uint32(at))
		at += copy(buf[at:], s)
		buf[at] = 0
		at++
	}
	return 0
}

func putSizes(m memory, count, size uint32, list []string) errno {
	if e := m.putUint32(count, uint32(len(list))); e != 0 {
		return e
	}
	return m.putUint32(size, uint32(sizeOf(list)))
}

func sizeOf(list []string) (size uint64) {
	for _, s := range list {
		size += uint64(len(s)) + 1
	}
	return size
}
