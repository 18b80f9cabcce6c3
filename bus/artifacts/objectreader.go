package artifacts

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/nats-io/nats.go/jetstream"
)

// Open implements [Store].
func (o *Objects) Open(ctx context.Context, digest string) (Reader, error) {
	n := name(digest)
	if n == "" {
		return nil, ErrNotFound
	}
	found, err := o.find(ctx, n)
	if err != nil {
		return nil, err
	}
	return o.reader(found), nil
}

func (o *Objects) reader(found *object) *objectReader {
	return &objectReader{objects: o, subject: content(found.NUID), next: 1, info: Info{int64(found.Size), found.Metadata[contentType]}}
}

// objectReader reads forward, and remembers where parts were that it has passed.
type objectReader struct {
	objects *Objects
	subject string // of the parts
	info    Info

	passed []passed // in order, without a gap from the beginning
	end    int64    // offset after the last of them
	next   uint64   // sequence after the last of them

	start int64 // offset of part
	part  []byte
}

type passed struct {
	start    int64
	sequence uint64
}

func (r *objectReader) Info() Info   { return r.info }
func (r *objectReader) Close() error { return nil }

func (r *objectReader) ReadAt(ctx context.Context, p []byte, offset int64) (int, error) {
	n := 0
	for n < len(p) && offset < r.info.Size {
		if err := r.load(ctx, offset); err != nil {
			return n, err
		}
		copied := copy(p[n:], r.part[offset-r.start:])
		n += copied
		offset += int64(copied)
	}
	return n, nil
}

// load makes part the one that contains an offset.
func (r *objectReader) load(ctx context.Context, offset int64) error {
	if offset >= r.start && offset < r.start+int64(len(r.part)) {
		return nil
	}
	if offset < r.end {
		at, found := slices.BinarySearchFunc(r.passed, offset, func(p passed, offset int64) int { return int(min(max(p.start-offset, -1), 1)) })
		if !found {
			at--
		}
		_, err := r.get(ctx, r.passed[at].sequence, r.passed[at].start)
		return err
	}
	for offset >= r.end {
		msg, err := r.get(ctx, r.next, r.end)
		if err != nil {
			return err
		}
		r.passed = append(r.passed, passed{r.end, msg.Sequence})
		r.end += int64(len(msg.Data))
		r.next = msg.Sequence + 1
	}
	return nil
}

// get makes part the first one from a sequence on.
func (r *objectReader) get(ctx context.Context, sequence uint64, start int64) (*jetstream.RawStreamMsg, error) {
	ctx, cancel := r.objects.timed(ctx)
	defer cancel()
	msg, err := r.objects.stream.GetMsg(ctx, sequence, jetstream.WithGetMsgSubject(r.subject))
	if errors.Is(err, jetstream.ErrMsgNotFound) || err == nil && len(msg.Data) == 0 {
		return nil, fmt.Errorf("the part from byte %d on: %w", start, ErrDamaged)
	}
	if err != nil {
		return nil, err
	}
	r.start, r.part = start, msg.Data
	return msg, nil
}
