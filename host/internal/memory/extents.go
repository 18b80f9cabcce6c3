package memory

import "slices"

// extent is a range of bytes.
type extent struct {
	start, end int
	of         []byte // where the bytes are, at the same offsets; nil of a mere range
}

// clip is the part of it between two offsets, empty if there is none.
func (e extent) clip(start, end int) extent {
	e.start = max(e.start, start)
	e.end = max(min(e.end, end), e.start)
	return e
}

// join sorts extents and joins those that overlap, and then those with the smallest gaps
// between them, until there are so few.
func join(extents []extent, most int) []extent {
	slices.SortFunc(extents, func(a, b extent) int { return a.start - b.start })
	joined := bridge(extents, 0, len(extents))
	excess := len(joined) - most
	if excess <= 0 {
		return joined
	}
	gaps := make([]int, len(joined)-1)
	for i := range gaps {
		gaps[i] = joined[i+1].start - joined[i].end
	}
	slices.Sort(gaps)
	widest := gaps[excess-1]
	narrower, _ := slices.BinarySearch(gaps, widest)
	return bridge(joined, widest, excess-narrower)
}

// bridge joins sorted extents with gaps less than widest between them, and so many of those
// with just that gap.
func bridge(extents []extent, widest, some int) []extent {
	joined := extents[:0]
	for _, e := range extents {
		last := len(joined) - 1
		if last < 0 || e.start-joined[last].end > widest || e.start-joined[last].end == widest && some == 0 {
			joined = append(joined, e)
			continue
		}
		if e.start-joined[last].end == widest {
			some--
		}
		joined[last].end = max(joined[last].end, e.end)
	}
	return joined
}

// without is what is left of extents beside others. Both are sorted.
func without(extents, others []extent) []extent {
	var left []extent
	for _, e := range extents {
		for len(others) > 0 && others[0].end <= e.start {
			others = others[1:]
		}
		for _, o := range others {
			if o.start >= e.end {
				break
			}
			if o.start > e.start {
				left = append(left, e.clip(e.start, o.start))
			}
			e = e.clip(o.end, e.end)
		}
		if e.start < e.end {
			left = append(left, e)
		}
	}
	return left
}

func total(extents []extent) int {
	bytes := 0
	for _, e := range extents {
		bytes += e.end - e.start
	}
	return bytes
}
