package artifacts

import "sync"

// block is the unit in which a file system hands out its room.
const block = 4 << 10

// charge is what a file of a size counts: an empty one needs room as well.
func charge(size int64) int64 { return max((size+block-1)/block, 1) * block }

// quota bounds the bytes of all files, also of those that are being written.
type quota struct {
	most int64

	mu   sync.Mutex
	used int64
}

// take reports whether there is room for more bytes, and counts them.
func (q *quota) take(bytes int64) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.used+bytes > q.most {
		return false
	}
	q.used += bytes
	return true
}

// add counts bytes that are there already.
func (q *quota) add(bytes int64) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.used += bytes
}
