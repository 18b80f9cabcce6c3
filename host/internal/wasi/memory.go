package wasi

import (
	"encoding/binary"
	"math"
	"reflect"

	"github.com/tetratelabs/wazero/api"
)

// memory is the linear memory of the guest that called. The zero value has no
// bytes.
type memory struct{ linear api.Memory }

func memoryOf(mod api.Module) memory {
	m := mod.Memory()
	if m == nil || reflect.ValueOf(m).IsNil() { // wazero hands out a nil pointer for none
		return memory{}
	}
	return memory{m}
}

// view gives n bytes of the guest's memory, not a copy. The last byte of a
// memory of 4 GiB is not accessible: its end is not a 32-bit number.
func (m memory) view(ptr uint32, n uint64) ([]byte, errno) {
	if m.linear == nil || uint64(ptr)+n > math.MaxUint32 {
		return nil, efault
	}
	b, ok := m.linear.Read(ptr, uint32(n))
	if !ok {
		return nil, efault
	}
	return b, 0
}

func (m memory) putUint32(ptr, v uint32) errno {
	b, e := m.view(ptr, 4)
	if e == 0 {
		binary.LittleEndian.PutUint32(b, v)
	}
	return e
}

func (m memory) putUint64(ptr uint32, v uint64) errno {
	b, e := m.view(ptr, 8)
	if e == 0 {
		binary.LittleEndian.PutUint64(b, v)
	}
	return e
}
