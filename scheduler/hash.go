package scheduler

import (
	"fmt"
	"strings"
)

// isHash reports whether s looks like H or H(a-b).
func isHash(s string) bool {
	return s != "" && s[0]|' ' == 'h' && (len(s) == 1 || s[1] == '(')
}

// hash reads H, H(a-b) and, with a step, H/n and H(a-b)/n. H is one value that
// depends on the seed and the field only; with a step it is every nth value from
// a first one on that the hash chooses among the first n.
func (f *field) hash(w word, seed string, step int, stepped bool, v *values) *ParseError {
	if f.hashMax == 0 {
		return w.fault("H is not allowed here", f.allowed())
	}
	if seed == "" {
		return w.fault("H needs a name to hash", "give the schedule a name; in Go, CronOptions.Name")
	}
	from, to := f.min, f.hashMax
	if len(w.text) > 1 {
		inner := w.from(2)
		low, high, ranged := inner.cut("-")
		if !ranged || !strings.HasSuffix(high.text, ")") {
			return w.fault(fmt.Sprintf("%q is not a range of H", w.text), fmt.Sprintf("write H(%d-%d)", f.min, f.hashMax))
		}
		high = high.to(len(high.text) - 1)
		var fault *ParseError
		if from, to, fault = f.ends(inner.to(len(inner.text)-1), low, high, "-"); fault != nil {
			return fault
		}
	}
	size := to - from + 1
	if stepped {
		size = min(size, step)
	}
	from += int(stableHash(seed, f.name) % uint64(size))
	if !stepped {
		to = from
	}
	v.add(from, to, step)
	return nil
}

// stableHash is FNV-1a in 64 bits over both texts, then the finalizer of
// MurmurHash3: its low bits alone would distinguish similar names badly. It must
// never change: all schedules with H would move.
func stableHash(seed, field string) uint64 {
	h := uint64(14695981039346656037)
	for _, s := range [...]string{seed, "\x00", field} {
		for i := range len(s) {
			h = (h ^ uint64(s[i])) * 1099511628211
		}
	}
	h = (h ^ h>>33) * 0xff51afd7ed558ccd
	h = (h ^ h>>33) * 0xc4ceb9fe1a85ec53
	return h ^ h>>33
}
