package artifacts

import "sync"

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
