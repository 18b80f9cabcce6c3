package mask

import (
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"unsafe"
)

// MinLength is the number of bytes that a value has at least to be masked, without white
// space around it.
const MinLength = 6

// Bounds of what a Masker knows. Beyond them, values that were added longest ago are
// forgotten.
const (
	maxValues  = 1000
	maxPattern = 4 << 20 // bytes of all patterns; each takes up to 13 bytes of memory
)

// replacement is what is written instead of a value.
const replacement = "***"

// Masker masks values of secrets. It is safe for concurrent use.
type Masker struct {
	finder atomic.Pointer[finder] // nil: there are no values

	mu     sync.Mutex
	values []known // the one that was added last is the last
}

// known is a value with the forms in which it is found.
type known struct {
	value string
	forms []form
	size  int // bytes of the patterns
}

// New returns a Masker without values.
func New() *Masker { return new(Masker) }

// Add has values masked from now on; those shorter than [MinLength] are ignored. A value
// that was rotated away stays masked until 1000 later ones were added: add each value again
// whenever it is in use, which costs little.
func (m *Masker) Add(values ...string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	added := false
	for _, v := range values {
		if v = strings.TrimSpace(v); len(v) >= MinLength {
			added = m.add(strings.Clone(v)) || added
		}
	}
	if added {
		m.forget()
		m.finder.Store(newFinder(m.values))
	}
}

// add puts a value at the end and reports whether it is new. The lock is held.
func (m *Masker) add(value string) bool {
	if at := slices.IndexFunc(m.values, func(k known) bool { return k.value == value }); at >= 0 {
		again := m.values[at]
		m.values = append(slices.Delete(m.values, at, at+1), again)
		return false
	}
	k := known{value: value, forms: formsOf(value)}
	for _, f := range k.forms {
		k.size += len(f.pattern)
	}
	m.values = append(m.values, k)
	return true
}

// forget removes the oldest values until the rest is within the bounds. The lock is held.
func (m *Masker) forget() {
	size, first := 0, len(m.values)
	for first > 0 && len(m.values)-first < maxValues {
		if size += m.values[first-1].size; size > maxPattern && first < len(m.values) {
			break
		}
		first--
	}
	m.values = slices.Delete(m.values, 0, first)
}

// String returns s with values masked. Without one it returns s itself.
func (m *Masker) String(s string) string {
	f := m.finder.Load()
	if f == nil {
		return s
	}
	data := unsafe.Slice(unsafe.StringData(s), len(s)) // which is only read
	spans := f.find(data)
	if len(spans) == 0 {
		return s
	}
	masked := replace(data, spans)
	return unsafe.String(unsafe.SliceData(masked), len(masked)) // nobody else has it
}

// Bytes returns data with values masked. Without one it returns data itself, which it never
// changes.
func (m *Masker) Bytes(data []byte) []byte {
	f := m.finder.Load()
	if f == nil {
		return data
	}
	spans := f.find(data)
	if len(spans) == 0 {
		return data
	}
	return replace(data, spans)
}

// replace returns a copy of data with a replacement for each span.
func replace(data []byte, spans []span) []byte {
	masked := make([]byte, 0, len(data)+len(spans)*len(replacement))
	at := 0
	for _, s := range spans {
		masked = append(masked, data[at:s.start]...)
		masked = append(masked, replacement...)
		at = min(s.end, len(data))
	}
	return append(masked, data[at:]...)
}
