package mask

import (
	"cmp"
	"slices"
)

// span is a part of a text that is masked. Its end may be after the end of the text.
type span struct{ start, end int }

// scan is the state of a search within a text that may arrive in parts.
type scan struct {
	*finder
	node  int32
	spans []span // in order; none touches the next
}

// find returns the spans of a whole text.
func (f *finder) find(data []byte) []span {
	s := scan{finder: f}
	s.run(data, 0)
	return s.spans
}

// held is how many bytes at the end of the text may be the beginning of a pattern.
func (s *scan) held() int { return int(s.nodes[s.node].depth) }

// run continues the search at an index of data. What precedes the index, as far as it is
// held, must be in data.
//
// The automaton takes several nanoseconds for a byte, the table of starts one. So whenever
// less than four bytes match, the table decides where the next pattern may begin. The place
// where the present match begins only moves forward, and each place is looked up once:
// the work is linear.
func (s *scan) run(data []byte, at int) {
	starts, shift := s.starts, s.shift
	probed := at - s.held() // the last place that was looked up
	if s.node == 0 {
		probed = at - 1
	}
	for at < len(data) {
		if n := &s.nodes[s.node]; n.depth < 4 && at-int(n.depth) > probed {
			from := at - int(n.depth)
			for ; from+4 <= len(data); from++ {
				if h := hash(data[from:from+4], shift); starts[h/64]&(1<<(h%64)) != 0 {
					break
				}
			}
			// The last three bytes are no whole word: nothing rules them out.
			if at, probed = from, from; from+4 > len(data) {
				probed = len(data)
			}
			s.node = 0
		}
		s.node = s.next(s.node, data[at])
		at++
		if n := &s.nodes[s.node]; n.match != 0 {
			s.add(span{at - int(n.match), at + s.after()})
		}
	}
}

// after is how much is masked after the pattern that ends at the present node.
func (s *scan) after() int {
	if i := s.node - s.deep; i >= 0 && int(i) < len(s.rest) {
		return int(s.rest[i])
	}
	return 0
}

// add adds the span of a match that ends at the present place, joined with those that it
// touches.
func (s *scan) add(next span) {
	for n := len(s.spans); n > 0 && s.spans[n-1].end >= next.start; n-- {
		last := s.spans[n-1]
		next = span{min(last.start, next.start), max(last.end, next.end)}
		s.spans = s.spans[:n-1]
	}
	s.spans = append(s.spans, next)
}

// join puts spans in order and joins those that touch each other.
func join(spans []span) []span {
	slices.SortFunc(spans, func(a, b span) int { return cmp.Compare(a.start, b.start) })
	joined := spans[:0]
	for _, s := range spans {
		if n := len(joined); n > 0 && joined[n-1].end >= s.start {
			joined[n-1].end = max(joined[n-1].end, s.end)
			continue
		}
		joined = append(joined, s)
	}
	return joined
}
