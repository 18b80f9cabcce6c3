package history

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/nats-io/nats.go/jetstream"
	"go.etcd.io/bbolt"

	"github.com/flowhost/flowhost/bus"
	"github.com/flowhost/flowhost/run"
)

// Buckets of the index for artifacts. A digest is its 32 bytes here.
var (
	bucketArtifacts = []byte("artifacts") // digest, sequence → nothing
	bucketMentions  = []byte("mentions")  // sequence → digests
)

// digestSize is the size of a digest in the index.
const digestSize = 32

// artifactsOf are the artifacts that the JSON of a record refers to, each once.
func artifactsOf(record []byte) []string {
	all := slices.Sorted(run.ArtifactDigests(record))
	return slices.Compact(all)
}

// mention notes the artifacts of a record.
func mention(tx *bbolt.Tx, e *indexEntry) error {
	if len(e.artifacts) == 0 {
		return nil
	}
	var all []byte
	for _, digest := range e.artifacts {
		key, ok := digestKey(digest)
		if !ok {
			return fmt.Errorf("%.80q is no digest", digest)
		}
		if err := tx.Bucket(bucketArtifacts).Put(binary.BigEndian.AppendUint64(key, e.seq), nil); err != nil {
			return err
		}
		all = append(all, key...)
	}
	return tx.Bucket(bucketMentions).Put(binary.BigEndian.AppendUint64(nil, e.seq), all)
}

// unmention forgets the artifacts of a record that is dropped.
func unmention(tx *bbolt.Tx, seq uint64) error {
	at := binary.BigEndian.AppendUint64(nil, seq)
	mentions := tx.Bucket(bucketMentions)
	for digest := range slices.Chunk(bytes.Clone(mentions.Get(at)), digestSize) {
		if err := tx.Bucket(bucketArtifacts).Delete(append(slices.Clip(digest), at...)); err != nil {
			return err
		}
	}
	return mentions.Delete(at)
}

// refers reports whether a record mentions an artifact.
func (x *recordIndex) refers(digest string) (found bool, err error) {
	key, ok := digestKey(digest)
	if !ok {
		return false, nil
	}
	err = x.view(func(tx *bbolt.Tx) error {
		first, _ := tx.Bucket(bucketArtifacts).Cursor().Seek(key)
		found = bytes.HasPrefix(first, key)
		return nil
	})
	return found, err
}

func digestKey(digest string) ([]byte, bool) {
	digits, ok := strings.CutPrefix(digest, "sha256:")
	key, err := hex.DecodeString(digits)
	return key, ok && err == nil && len(key) == digestSize
}

// RefersTo reports whether the record of a finished run refers to an artifact. It knows the
// records that Committed took before [Store.Settle]. It waits while the index is not up to
// date, until ctx ends.
func (h *Store) RefersTo(ctx context.Context, digest string) (bool, error) {
	for {
		index, err := h.opened(ctx)
		if err != nil {
			return false, err
		}
		found, err := index.refers(digest)
		if !h.broken(index, err) {
			return found, err
		}
	}
}

// Settle waits until the index has everything that Committed took before, or until ctx
// ends. Run must be running.
func (h *Store) Settle(ctx context.Context) error {
	if err := h.Flush(ctx); err != nil {
		return err
	}
	info, err := h.publisher.Stream().Info(ctx)
	if err != nil {
		return err
	}
	for {
		h.mu.Lock()
		next, change, ended := h.next, h.change, h.ended
		h.mu.Unlock()
		if ended != nil || next > info.State.LastSeq {
			return ended
		}
		select {
		case <-change:
		case <-ctx.Done():
			return fmt.Errorf("waiting for the index of the history: %w", context.Cause(ctx))
		}
	}
}

// reached notes how far the index has come.
func (h *Store) reached(next uint64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.next = next
	h.signal()
}

// loadArtifacts gives entries that were read from headers alone the artifacts that their
// records refer to.
func (h *Store) loadArtifacts(ctx context.Context, entries []indexEntry) error {
	for i := range entries {
		e := &entries[i]
		if !e.hasArtifacts {
			continue
		}
		body, err := h.body(ctx, e.seq)
		if err != nil {
			return err
		}
		e.artifacts = artifactsOf(body)
	}
	return nil
}

// body is the JSON of the record at a place in the stream, as much of it as there is.
func (h *Store) body(ctx context.Context, seq uint64) ([]byte, error) {
	msg, err := h.message(ctx, seq)
	if errors.Is(err, jetstream.ErrMsgNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	if msg.Header.Get(bus.HeaderParts) == "" {
		return msg.Data, nil
	}
	if err := h.reading.Acquire(ctx, 1); err != nil {
		return nil, context.Cause(ctx)
	}
	defer h.reading.Release(1)
	whole, err := h.whole(ctx, msg)
	if err != nil || whole == nil {
		return msg.Data, err
	}
	body, err := whole.inflate()
	if err != nil {
		h.log.Error("the parts of a record are damaged: artifacts that only they refer to may be removed", "error", err)
		return msg.Data, nil
	}
	return body, nil
}
