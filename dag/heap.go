package dag

// minHeap is a binary heap of integers with the smallest first. It takes the
// place of container/heap, which allocates for each integer.
type minHeap []int

func (h *minHeap) push(x int) {
	s := append(*h, x)
	i := len(s) - 1
	for i > 0 {
		above := (i - 1) / 2
		if s[above] <= x {
			break
		}
		s[i] = s[above]
		i = above
	}
	s[i] = x
	*h = s
}

// pop takes out the smallest. The heap must not be empty.
func (h *minHeap) pop() int {
	s := *h
	smallest, last := s[0], len(s)-1
	x := s[last]
	s = s[:last]
	*h = s
	i := 0
	for {
		below := 2*i + 1
		if below >= last {
			break
		}
		if below+1 < last && s[below+1] < s[below] {
			below++
		}
		if x <= s[below] {
			break
		}
		s[i] = s[below]
		i = below
	}
	if last > 0 {
		s[i] = x
	}
	return smallest
}
