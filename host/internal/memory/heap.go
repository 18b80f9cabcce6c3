package memory

import "context"

// heap keeps a memory in a slice. It works everywhere.
type heap struct {
	limit int
	bytes []byte // all that was ever used; zero from its length to its capacity
}

func newHeap(limit int) *heap { return &heap{limit: limit, bytes: []byte{}} }

func (h *heap) grow(used, size int) []byte {
	if size > h.limit {
		return nil
	}
	if size > cap(h.bytes) {
		// A guest that grows page by page would have all of it copied each time.
		larger := make([]byte, size, max(size, min(h.limit, cap(h.bytes)*5/4)))
		copy(larger, h.bytes[:used])
		h.bytes = larger
	}
	h.bytes = h.bytes[:max(size, len(h.bytes))]
	return h.bytes[:size:size]
}

func (h *heap) freeze(_ context.Context, size int, _ *Image) (*Image, error) {
	return copied(h.bytes[:size]), nil
}

func (h *heap) adopt(_ context.Context, image *Image, _ int) error {
	h.grow(len(h.bytes), image.size)
	return h.reset(image, len(h.bytes))
}

func (h *heap) reset(image *Image, used int) error {
	image.restore(h.bytes, 0, image.size)
	clear(h.bytes[image.size:used])
	h.bytes = h.bytes[:image.size]
	return nil
}

func (h *heap) watch(*Image) {} // all of it is copied
func (h *heap) pause()       {}
func (h *heap) resume()      {}

func (h *heap) private() int { return cap(h.bytes) }

func (h *heap) close() error {
	h.bytes = nil
	return nil
}
