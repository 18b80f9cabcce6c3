package host

import "github.com/tetratelabs/wazero/experimental"

// memory is the linear memory of one instance. It grows up to the call's limit
// and as far as the pool has bytes; a growth that is refused gives the guest -1.
// It belongs to the goroutine of its call.
type memory struct {
	lease   *lease
	limit   int64
	buf     []byte
	refused bool // a growth was refused
}

func newMemory(l *lease, limit int64) *memory {
	return &memory{lease: l, limit: limit}
}

// Allocate makes memory a wazero allocator. A module has one memory at most, so
// the memory and its allocator are the same thing.
func (m *memory) Allocate(_, _ uint64) experimental.LinearMemory { return m }

// Reallocate gives the memory at its new size, or nil to refuse.
func (m *memory) Reallocate(size uint64) []byte {
	if size <= uint64(cap(m.buf)) {
		m.buf = m.buf[:size]
		return m.buf
	}
	if size > uint64(m.limit) {
		m.refused = true
		return nil
	}
	capacity, ok := m.reserve(int64(size))
	if !ok {
		m.refused = true
		return nil
	}
	grown := make([]byte, size, capacity)
	copy(grown, m.buf)
	m.buf = grown
	return grown
}

// reserve books memory for the new size, with a quarter more of the present one
// where that can be had: a guest that grows page by page would otherwise have
// all of its memory copied each time.
func (m *memory) reserve(size int64) (capacity int64, ok bool) {
	roomy := max(size, int64(cap(m.buf))*5/4)
	for _, capacity := range []int64{min(roomy, m.limit), size} {
		missing := capacity - m.lease.bytes
		if missing <= 0 || m.lease.grow(missing) {
			return capacity, true
		}
	}
	return 0, false
}

// Free drops the bytes. The pool gets them back when the lease ends: wazero
// does not call Free on all paths.
func (m *memory) Free() { m.buf = nil }
