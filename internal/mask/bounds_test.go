package mask

import (
	"strconv"
	"strings"
	"testing"
)

// TestBounds counts the values that are kept, and the bytes of their patterns.
func TestBounds(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ size, add, want int }{
		{1, maxValues + 10, maxValues},
		{maxPattern / 10, 30, 10},
		{maxPattern, 3, 1},
		{2 * maxPattern, 3, 1}, // the last one is always masked
	} {
		m := New()
		for i := range test.add {
			m.values = append(m.values, known{value: strconv.Itoa(i), size: test.size})
		}
		m.forget()
		if n := len(m.values); n != test.want || m.values[n-1].value != strconv.Itoa(test.add-1) {
			t.Errorf("%d of size %d: %d are kept, up to %s", test.add, test.size, n, m.values[n-1].value)
		}
	}
}

// TestSizes adds the largest value that a secret may have, one that escapes make as long as
// can be.
func TestSizes(t *testing.T) {
	t.Parallel()
	for _, value := range []string{strings.Repeat("\x01", 64<<10), strings.Repeat("<1234>\n", 8<<10)} {
		m := New()
		m.Add("another value", value)
		if len(m.values) != 2 || m.values[1].size > 10<<10 {
			t.Errorf("%d values, %d bytes of patterns", len(m.values), m.values[len(m.values)-1].size)
		}
	}
}
