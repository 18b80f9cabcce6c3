package history

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"

	bolterrors "go.etcd.io/bbolt/errors"

	"github.com/flowhost/flowhost/bus/internal/jskit"
)

// errEnded is what readers get after Run.
var errEnded = errors.New("the history is closed")

// Run publishes and indexes until ctx ends, and returns its cause. What is not
// acknowledged then is published when it is given again after the next start.
func (h *Store) Run(ctx context.Context) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var publishing sync.WaitGroup
	publishing.Go(func() { cancel(h.publisher.Run(ctx)) })
	index, err := h.follow(ctx)
	cancel(err)
	publishing.Wait()
	h.end(index)
	return err
}

// end closes the index, after it has added the records that are still missing.
func (h *Store) end(index *recordIndex) {
	h.mu.Lock()
	h.index, h.ended = nil, errEnded
	h.signal()
	h.mu.Unlock()
	if index == nil {
		return
	}
	f := newFollower(h, index)
	place, err := index.place()
	if err == nil {
		f.next = place.next
		_, err = f.addStored()
	}
	if err == nil {
		err = index.close()
	}
	if err != nil {
		h.log.Warn("the index of the history was not closed well", "error", err)
	}
}

// opened gives the index. It waits while there is none, until ctx ends.
func (h *Store) opened(ctx context.Context) (*recordIndex, error) {
	for {
		h.mu.Lock()
		index, change, ended := h.index, h.change, h.ended
		h.mu.Unlock()
		if index != nil || ended != nil {
			return index, ended
		}
		select {
		case <-change:
		case <-ctx.Done():
			return nil, fmt.Errorf("waiting for the index of the history: %w", context.Cause(ctx))
		}
	}
}

// broken reports whether an error of the index means that there will be a new one,
// or that this one was closed meanwhile.
func (h *Store) broken(index *recordIndex, err error) bool {
	if !errors.Is(err, errIndexDamaged) && !errors.Is(err, bolterrors.ErrDatabaseNotOpen) {
		return false
	}
	h.retract(index)
	return true
}

// offer lets readers use the index.
func (h *Store) offer(index *recordIndex) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.index = index
	h.signal()
}

// retract has readers wait for another index than this one.
func (h *Store) retract(index *recordIndex) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.index == index && index != nil {
		h.index = nil
		h.signal()
	}
}

// inUse reports whether no reader has retracted the index.
func (h *Store) inUse(index *recordIndex) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.index == index
}

// storedNow gives what is in the stream and not in the index.
func (h *Store) storedNow() []*freshRecord {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clip(h.stored)
}

// indexed forgets the first of the stored records: they are in the index.
func (h *Store) indexed(records []*freshRecord) {
	h.leave(records...)
	h.mu.Lock()
	defer h.mu.Unlock()
	// When too many were waiting they have all been forgotten meanwhile.
	if len(records) > 0 && len(h.stored) > 0 && h.stored[0] == records[0] {
		h.stored = h.stored[len(records):]
	}
}

// idle reports whether nothing of this process is on its way.
func (h *Store) idle() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.fresh) == 0
}

// signal wakes those who wait for a change. h.mu is held.
func (h *Store) signal() {
	close(h.change)
	h.change = make(chan struct{})
}

// follow keeps the index up to date until ctx ends, and rebuilds it when it has
// to. It returns the index that is to be closed, if any.
func (h *Store) follow(ctx context.Context) (*recordIndex, error) {
	delay := jskit.Backoff{Log: h.log, What: "index the history"}
	for {
		index, err := h.openIndex()
		if err != nil {
			return nil, err
		}
		f := newFollower(h, index)
		err = f.catchUp(ctx)
		if err == nil {
			delay.Done()
			h.offer(index)
			err = f.keepUp(ctx)
			h.retract(index)
		}
		switch {
		case errors.Is(err, errIndexDamaged):
			// It stays open: see protect.
		case errors.Is(err, errOtherStream):
			if err := index.close(); err != nil {
				return nil, err
			}
		default:
			return index, err
		}
		if err := os.Remove(h.path); err != nil {
			return nil, err
		}
		if err := delay.Wait(ctx, err); err != nil {
			return nil, err
		}
	}
}

// openIndex opens the file, or a new one in its place when it is damaged.
func (h *Store) openIndex() (*recordIndex, error) {
	index, err := openIndex(h.path)
	if !errors.Is(err, errIndexDamaged) {
		return index, err
	}
	h.log.Warn("the index of the history is rebuilt from the stream", "error", err)
	if err := os.Remove(h.path); err != nil {
		return nil, err
	}
	return openIndex(h.path)
}
