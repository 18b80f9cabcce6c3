package host

import (
	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/experimental"

	"github.com/flowhost/flowhost/host/internal/memory"
)

// linearMemory is the linear memory of one instance as wazero sees it. While a call
// runs it grows up to the call's limit and as far as the pool has bytes; a
// growth that is refused gives the guest -1. It belongs to the goroutine of the
// call.
type linearMemory struct {
	*memory.Memory
	lease   *lease
	limit   int64
	refused bool // a growth was refused
	short   bool // because the pool had no bytes for it
	settled bool // report the memory's size to wazero, whatever size it requests
}

// bind gives the memory to a call.
func (m *linearMemory) bind(l *lease, limit int64) {
	m.lease, m.limit, m.refused, m.short = l, limit, false, false
}

// Allocate makes the memory a wazero allocator. A module has one memory at most,
// so the memory and its allocator are the same thing.
func (m *linearMemory) Allocate(_, _ uint64) experimental.LinearMemory { return m }

// Reallocate gives the memory at its new size, or nil to refuse.
func (m *linearMemory) Reallocate(size uint64) []byte {
	if m.settled {
		return m.Bytes()
	}
	if size > uint64(m.limit) {
		m.refused = true
		return nil
	}
	if !m.lease.cover(int64(size)) {
		m.refused, m.short = true, true
		return nil
	}
	bytes := m.Grow(int(size))
	m.refused = m.refused || bytes == nil
	return bytes
}

// Free does nothing: who made the memory closes it. wazero does not call Free on
// all paths.
func (m *linearMemory) Free() {}

// settle lets wazero know the size of a memory that went back to its image, or
// that took one over. The only word that wazero has for that is a growth, which
// can be answered with any size. It fails for a memory that has reached the
// module's own maximum, which cannot grow.
func (m *linearMemory) settle(view api.Memory) bool {
	size := len(m.Bytes())
	if view == nil || int(view.Size()) == size {
		return true
	}
	m.settled = true
	defer func() { m.settled = false }()
	_, grown := view.Grow(1)
	return grown && int(view.Size()) == size
}
