package mask

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"math/bits"
	"slices"
)

// node is a state of the automaton of Aho and Corasick (Efficient String Matching, 1975):
// the longest end of the text that is the beginning of a pattern. Nodes are numbered by
// depth, then in order, so that the children of a node are next to each other and end where
// those of the next node begin.
type node struct {
	children int32 // number of the first child
	fail     int32 // the node for the longest proper end of this one's text
	depth    uint8 // length of its text
	match    uint8 // length of the longest pattern that ends here; 0: none does
}

// finder finds the forms of a set of values. It is never changed.
type finder struct {
	nodes  []node  // the root first, and one more after the last
	labels []byte  // the last byte of each node's text
	rest   []int32 // of the nodes of maxPrefix bytes: how much after them is masked, too
	deep   int32   // number of the first of these

	// starts has a bit for the hash of each pattern's first four bytes: most places of a
	// text are ruled out by it.
	starts []uint64
	shift  uint8
}

// newFinder returns a finder of the forms of values.
func newFinder(values []known) *finder {
	var forms []form
	for _, v := range values {
		forms = append(forms, v.forms...)
	}
	slices.SortFunc(forms, func(a, b form) int {
		return cmp.Or(cmp.Compare(a.pattern, b.pattern), cmp.Compare(b.rest, a.rest))
	})
	forms = slices.CompactFunc(forms, func(a, b form) bool { return a.pattern == b.pattern })
	f := new(finder)
	f.hash(forms)
	f.grow(forms)
	f.link()
	return f
}

// hash fills the table of starts.
func (f *finder) hash(forms []form) {
	width := min(max(bits.Len(uint(len(forms)))+6, 12), 20) // at most one bit of 64 is set, but for very many forms
	f.starts, f.shift = make([]uint64, 1<<width/64), uint8(32-width)
	for _, form := range forms {
		h := hash([]byte(form.pattern[:4]), f.shift)
		f.starts[h/64] |= 1 << (h % 64)
	}
}

// hash is Knuth's multiplicative one, of four bytes.
func hash(four []byte, shift uint8) uint32 {
	return binary.LittleEndian.Uint32(four) * 2654435761 >> (shift & 31)
}

// grow makes the tree of sorted patterns, level by level.
func (f *finder) grow(forms []form) {
	type group struct{ from, to int32 } // of the patterns that begin with a node's text
	size := 2
	for i, form := range forms {
		size += len(form.pattern)
		if i > 0 {
			size -= commonPrefix(form.pattern, forms[i-1].pattern)
		}
	}
	f.nodes, f.labels = make([]node, 0, size), make([]byte, 1, size)
	f.nodes = append(f.nodes, node{})
	groups := []group{{0, int32(len(forms))}}
	for depth := 0; len(groups) > 0; depth++ {
		first := len(f.nodes) - len(groups)
		var next []group
		for i, g := range groups {
			n := &f.nodes[first+i]
			n.children = int32(first + len(groups) + len(next))
			if len(forms[g.from].pattern) == depth { // the shortest comes first
				n.match = uint8(depth)
				if depth == maxPrefix {
					f.rest = append(f.rest, int32(forms[g.from].rest))
				}
				g.from++
			}
			for g.from < g.to {
				label, end := forms[g.from].pattern[depth], g.from+1
				for end < g.to && forms[end].pattern[depth] == label {
					end++
				}
				next = append(next, group{g.from, end})
				f.labels = append(f.labels, label)
				g.from = end
			}
		}
		for range next {
			f.nodes = append(f.nodes, node{depth: uint8(depth + 1)})
		}
		groups = next
	}
	f.deep = int32(len(f.nodes) - len(f.rest)) // the deepest are the last
	f.nodes = append(f.nodes, node{children: int32(len(f.nodes))})
}

func commonPrefix(a, b string) int {
	n := min(len(a), len(b))
	for i := range n {
		if a[i] != b[i] {
			return i
		}
	}
	return n
}

// link sets where each node leads when the text does not continue it.
func (f *finder) link() {
	for number := range int32(len(f.nodes) - 1) {
		for child := f.nodes[number].children; child < f.nodes[number+1].children; child++ {
			n := &f.nodes[child]
			if number != 0 {
				n.fail = f.next(f.nodes[number].fail, f.labels[child])
			}
			n.match = max(n.match, f.nodes[n.fail].match)
		}
	}
}

// next is the node that follows a node with one more byte of the text.
func (f *finder) next(number int32, b byte) int32 {
	for {
		n := &f.nodes[number]
		from, to := n.children, f.nodes[number+1].children
		switch {
		case to-from == 1:
			if f.labels[from] == b {
				return from
			}
		case to > from:
			if i := bytes.IndexByte(f.labels[from:to], b); i >= 0 {
				return from + int32(i)
			}
		}
		if number == 0 {
			return 0
		}
		number = n.fail
	}
}
