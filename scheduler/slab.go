package scheduler

// chunk is how many elements of a slab are allocated at a time, a power of two.
const chunk = 1024

// slab is an array that grows and shrinks by chunks: nothing is copied when it
// does, and hardly more is held than what is used.
type slab[E any] struct {
	chunks []*[chunk]E
}

func (s *slab[E]) at(i int) *E { return &s.chunks[uint(i)/chunk][uint(i)%chunk] }

// grow makes room for n elements; there was room for n-1.
func (s *slab[E]) grow(n int) {
	if n > len(s.chunks)*chunk {
		s.chunks = append(s.chunks, new([chunk]E))
	}
}

// shrink gives back what n elements do not need. One chunk more is kept, so that
// going to and fro allocates nothing.
func (s *slab[E]) shrink(n int) {
	keep := (n+chunk-1)/chunk + 1
	if keep < len(s.chunks) {
		clear(s.chunks[keep:])
		s.chunks = s.chunks[:keep]
	}
}
