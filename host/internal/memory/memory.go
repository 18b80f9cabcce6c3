package memory

import (
	"context"
	"errors"
)

// ErrNoImage is returned by [Memory.Reset] for a memory that has no image.
var ErrNoImage = errors.New("the memory has no image")

// Memory is the linear memory of one instance. It belongs to one goroutine at a
// time.
type Memory struct {
	backing
	size  int    // bytes in use
	image *Image // nil before Freeze or Adopt
}

// backing is where the bytes of a memory are.
type backing interface {
	// grow makes the first size bytes usable, of which those beyond used are
	// zero, and gives them. nil means that there are no more.
	grow(used, size int) []byte

	// freeze makes an image of the first size bytes. below is the image that was
	// adopted, nil without. It fails with the cause with which ctx ended.
	freeze(ctx context.Context, size int, below *Image) (*Image, error)

	// adopt makes the image's bytes the first ones, and forgets those from there up
	// to used. It fails with the cause with which ctx ended.
	adopt(ctx context.Context, image *Image, used int) error

	// reset undoes what was written to the image's bytes, and forgets those
	// from there up to used. The image is the one that was adopted.
	reset(image *Image, used int) error

	// watch begins a call, whose goroutine stays on its thread until pause or reset.
	watch(image *Image)
	pause()
	resume()

	// private is the bytes that this memory holds for itself.
	private() int

	close() error
}

// New makes an empty memory that can grow to limit bytes.
func New(limit int) *Memory {
	if region, err := reserve(limit); err == nil {
		return &Memory{backing: region}
	}
	return &Memory{backing: newHeap(limit)}
}

// Bytes is what is in use. It is valid until the next call of a method.
func (m *Memory) Bytes() []byte { return m.grow(m.size, m.size) }

// Grow makes the memory size bytes large, with zeros at its end, and gives all
// of them. It gives nil, and changes nothing, when the limit is reached; a
// memory never gets smaller this way.
func (m *Memory) Grow(size int) []byte {
	bytes := m.grow(m.size, max(size, m.size))
	if bytes != nil {
		m.size = len(bytes)
	}
	return bytes
}

// Freeze makes an image of the memory, which is based on it from now on. Where the memory
// was based on another image, the new one shares with that what has not changed, and
// costs as little as the rest; each of them can be closed before the other. Whoever calls
// Freeze closes the image when no memory uses it any more. It fails with the cause with
// which ctx ended.
func (m *Memory) Freeze(ctx context.Context) (*Image, error) {
	image, err := m.freeze(ctx, m.size, m.image)
	if err != nil {
		return nil, err
	}
	if err := m.Adopt(ctx, image); err != nil {
		return nil, errors.Join(err, image.Close())
	}
	return image, nil
}

// Adopt gives the memory size and content of the image. It fails with the cause with
// which ctx ended; the memory is of no use any more then.
func (m *Memory) Adopt(ctx context.Context, image *Image) error {
	if err := m.adopt(ctx, image, m.size); err != nil {
		return err
	}
	m.image, m.size = image, image.size
	return nil
}

// Watch begins a call, right after [Memory.Adopt] or [Memory.Reset]: from now on until
// [Memory.Reset] or [Memory.Close], which the same goroutine calls, nobody but this goroutine
// writes to the memory. The goroutine may be bound to its thread meanwhile. Without Watch a
// reset finds out by other means what was written.
func (m *Memory) Watch() {
	if m.image != nil {
		m.watch(m.image)
	}
}

// Pause is for a call that waits or makes way for others: its goroutine may go to another
// thread. Until [Memory.Resume], or the reset, nobody writes to the memory.
func (m *Memory) Pause() { m.pause() }

// Resume lets the call, on its goroutine, write to the memory again after [Memory.Pause].
func (m *Memory) Resume() { m.resume() }

// Reset gives the memory size and content of its image again. After an error
// the memory is of no use any more.
func (m *Memory) Reset() error {
	if m.image == nil {
		return ErrNoImage
	}
	if err := m.reset(m.image, m.size); err != nil {
		return err
	}
	m.size = m.image.size
	return nil
}

// Private is how many bytes the memory keeps for itself, measured at its last
// reset. What it shares with others of its image is not part of it.
func (m *Memory) Private() int { return m.private() }

// Close frees the memory. Nothing may use its bytes afterwards.
func (m *Memory) Close() error { return m.close() }
