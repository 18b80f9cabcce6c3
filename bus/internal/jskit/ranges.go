package jskit

import (
	"fmt"
	"strings"
)

// maxRanges bounds how many ranges a text names.
const maxRanges = 20

// Ranges are sequences, in ranges that do not overlap.
type Ranges []sequenceRange

type sequenceRange struct{ first, last uint64 }

// Add appends a range.
func (r *Ranges) Add(first, last uint64) { *r = append(*r, sequenceRange{first, last}) }

// Count is the number of sequences in all ranges.
func (r Ranges) Count() (n uint64) {
	for _, s := range r {
		n += s.last - s.first + 1
	}
	return n
}

// String names the ranges as in "3, 7-12".
func (r Ranges) String() string {
	var parts []string
	for i, s := range r {
		switch {
		case i == maxRanges:
			return strings.Join(parts, ", ") + fmt.Sprintf(" and %d ranges more, up to %d", len(r)-i, r[len(r)-1].last)
		case s.first == s.last:
			parts = append(parts, fmt.Sprint(s.first))
		default:
			parts = append(parts, fmt.Sprintf("%d-%d", s.first, s.last))
		}
	}
	return strings.Join(parts, ", ")
}
