package kv

import (
	"context"
	"errors"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/flowhost/flowhost/bus/internal/ops"
	"github.com/flowhost/flowhost/run/access"
)

// MaxTTL is how long a key may be kept at most that expires at all.
const MaxTTL = 10 * 365 * 24 * time.Hour

// head is that of every operation on a bucket; which fields an operation has is checked
// where it is read.
type head struct {
	Bucket   string  `json:"bucket"`
	Key      string  `json:"key"`
	Revision *uint64 `json:"revision"` // that the key must have; 0: it must not exist
	TTL      int64   `json:"ttl_ms"`   // after which a key is deleted; rounded up to seconds
	Prefix   string  `json:"prefix"`
	After    string  `json:"after"`
	Limit    int     `json:"limit"`
}

// stored is the head of the answer to get, put and delete.
type stored struct {
	Revision uint64     `json:"revision"`
	Created  *time.Time `json:"created,omitempty"` // of get: when the value was put
}

// get reads a key: head {bucket, key} → {revision, created}, and the value as body.
func (s *Store) get(op *access.Operation, h *head) (work, *access.Fault) {
	if h.Revision != nil || h.TTL != 0 {
		return nil, ops.Invalid("kv.get takes neither revision nor ttl_ms")
	}
	if fault := checkOne(op, h); fault != nil {
		return nil, fault
	}
	if fault := ops.NoBody(op); fault != nil {
		return nil, fault
	}
	return func(ctx context.Context, b *bucket) (access.Answer, error) {
		msg, err := s.last(ctx, b, h.Key)
		if err != nil {
			return access.Answer{}, err
		}
		if msg == nil || isMarker(msg.Header) {
			return access.Answer{}, notFound(h)
		}
		created := msg.Time.UTC()
		return ops.Done(stored{msg.Sequence, &created}, msg.Data), nil
	}, nil
}

// put writes a key: head {bucket, key, revision, ttl_ms}, and the value as body →
// {revision}.
func (s *Store) put(op *access.Operation, h *head) (work, *access.Fault) {
	if fault := checkOne(op, h); fault != nil {
		return nil, fault
	}
	if fault := ops.CheckBody(op); fault != nil {
		return nil, fault
	}
	if h.TTL < 0 || h.TTL > MaxTTL.Milliseconds() {
		return nil, ops.Invalid("kv.put failed: ttl_ms is negative or more than ten years: leave it out for a key that does not expire")
	}
	return func(ctx context.Context, b *bucket) (access.Answer, error) {
		msg := &nats.Msg{Subject: b.subject(h.Key), Data: op.Body}
		var opts []jetstream.PublishOpt
		if h.TTL > 0 {
			if !b.ttl {
				return access.Answer{}, &access.Fault{Code: access.CodeRefused, Target: target(h),
					Message: "kv.put failed: keys of this bucket cannot expire, because a NATS server older than 2.11 made it: leave ttl_ms out"}
			}
			seconds := (h.TTL + 999) / 1000 // the server's unit
			opts = append(opts, jetstream.WithMsgTTL(time.Duration(seconds)*time.Second))
		}
		revision, err := s.write(ctx, b, h, msg, opts)
		return ops.Done(stored{Revision: revision}, nil), err
	}, nil
}

// delete removes a key, which need not exist: head {bucket, key, revision} → {revision}. In
// its place a marker is left for an hour.
func (s *Store) delete(op *access.Operation, h *head) (work, *access.Fault) {
	if h.TTL != 0 {
		return nil, ops.Invalid("kv.delete takes no ttl_ms")
	}
	if fault := checkOne(op, h); fault != nil {
		return nil, fault
	}
	if fault := ops.NoBody(op); fault != nil {
		return nil, fault
	}
	return func(ctx context.Context, b *bucket) (access.Answer, error) {
		if b == nil {
			if h.Revision != nil && *h.Revision != 0 {
				return access.Answer{}, conflict(h)
			}
			return ops.Done(stored{}, nil), nil
		}
		msg := &nats.Msg{Subject: b.subject(h.Key), Header: nats.Header{"KV-Operation": {"DEL"}}}
		var opts []jetstream.PublishOpt
		if b.ttl {
			opts = append(opts, jetstream.WithMsgTTL(markerAge))
		}
		revision, err := s.write(ctx, b, h, msg, opts)
		return ops.Done(stored{Revision: revision}, nil), err
	}, nil
}

// write stores a message if the key's revision is the one that the head asks for.
func (s *Store) write(ctx context.Context, b *bucket, h *head, msg *nats.Msg, opts []jetstream.PublishOpt) (uint64, error) {
	if h.Revision == nil {
		return s.publish(ctx, msg, opts)
	}
	revision, err := s.publish(ctx, msg, append(opts, jetstream.WithExpectLastSequencePerSubject(*h.Revision)))
	if !isWrongRevision(err) {
		return revision, err
	}
	if *h.Revision != 0 {
		return 0, conflict(h)
	}
	// A key that was deleted does not exist, and yet the server has a message of it.
	last, err := s.last(ctx, b, h.Key)
	switch {
	case err != nil:
		return 0, err
	case last == nil || !isMarker(last.Header):
		return 0, conflict(h)
	}
	revision, err = s.publish(ctx, msg, append(opts, jetstream.WithExpectLastSequencePerSubject(last.Sequence)))
	if isWrongRevision(err) {
		return 0, conflict(h)
	}
	return revision, err
}

func (s *Store) publish(ctx context.Context, msg *nats.Msg, opts []jetstream.PublishOpt) (uint64, error) {
	ack, err := ops.Publish(ctx, s.js, msg, s.cfg.Timeout, opts...)
	if err != nil {
		return 0, err
	}
	return ack.Sequence, nil
}

// last reads the last message of a key, nil when there is none.
func (s *Store) last(ctx context.Context, b *bucket, key string) (*jetstream.RawStreamMsg, error) {
	if b == nil {
		return nil, nil
	}
	timed, cancel := s.timed(ctx)
	defer cancel()
	msg, err := b.stream.GetLastMsgForSubject(timed, b.subject(key))
	if errors.Is(err, jetstream.ErrMsgNotFound) {
		return nil, nil
	}
	return msg, err
}

// isMarker reports whether a message says that its key is gone: deleted by a client, or
// expired.
func isMarker(header nats.Header) bool {
	return header.Get("KV-Operation") != "" || header.Get(jetstream.MarkerReasonHeader) != ""
}

func isWrongRevision(err error) bool {
	var api *jetstream.APIError
	return errors.As(err, &api) && (api.ErrorCode == jetstream.JSErrCodeStreamWrongLastSequence ||
		api.ErrorCode == jetstream.JSErrCodeStreamWrongLastSequenceConstant)
}

// checkOne holds an operation on one key against the rules of names.
func checkOne(op *access.Operation, h *head) *access.Fault {
	if h.Prefix != "" || h.After != "" || h.Limit != 0 {
		return ops.Invalid("%s takes neither prefix, after nor limit", op.Kind)
	}
	if fault := invalid(op.Kind, CheckBucket(h.Bucket)); fault != nil {
		return fault
	}
	return invalid(op.Kind, CheckKey(h.Key))
}

func target(h *head) string { return "kv " + h.Bucket + " " + h.Key }

func notFound(h *head) *access.Fault {
	return &access.Fault{Code: access.CodeNotFound, Target: target(h), Message: "the bucket has no such key"}
}

func conflict(h *head) *access.Fault {
	why := "the key has another revision: read it again and decide again"
	if *h.Revision == 0 {
		why = "the key exists"
	}
	return &access.Fault{Code: access.CodeConflict, Target: target(h), Message: why}
}
