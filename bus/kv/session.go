package kv

import (
	"context"
	"errors"
	"strconv"
	"strings"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/flowhost/flowhost/bus/internal/jskit"
	"github.com/flowhost/flowhost/bus/internal/ops"
	"github.com/flowhost/flowhost/run/access"
)

// Session performs the operations of one attempt. Its method is safe for concurrent use.
// There is nothing to close.
type Session struct {
	store  *Store
	policy func() access.Policy // that decides on an operation that begins now
}

// Session returns a session under a policy.
func (s *Store) Session(policy func() access.Policy) *Session { return &Session{s, policy} }

// work performs one operation on a bucket.
type work func(ctx context.Context, b *bucket) (access.Answer, error)

// Do performs an operation.
func (s *Session) Do(ctx context.Context, op *access.Operation) access.Answer {
	name, todo, create, fault := s.plan(op)
	if fault == nil {
		fault = ops.Ended(ctx, op.Kind)
	}
	if fault != nil {
		return ops.Failed(fault)
	}
	answer, err := s.perform(ctx, name, todo, create)
	var own *access.Fault
	switch {
	case errors.As(err, &own):
		return ops.Failed(own)
	case err != nil:
		return ops.Failed(ops.Wire(ctx, op.Kind, err))
	}
	return answer
}

// perform finds the bucket and works on it, again when it turns out to have been removed.
func (s *Session) perform(ctx context.Context, name string, todo work, create bool) (access.Answer, error) {
	for last := false; ; last = true {
		if err := jskit.Usable(s.store.cfg.Conn); err != nil {
			return access.Answer{}, err
		}
		open := s.store.open
		if create {
			open = s.store.openOrCreate
		}
		b, err := open(ctx, name)
		if errors.Is(err, jetstream.ErrStreamNotFound) && !create {
			return todo(ctx, nil)
		}
		if err != nil {
			return access.Answer{}, err
		}
		answer, err := todo(ctx, b)
		if err == nil || !gone(err) {
			return answer, err
		}
		s.store.forget(name)
		if last {
			return access.Answer{}, err
		}
	}
}

// plan reads an operation and decides whether it may be performed. Nothing has been sent
// then.
func (s *Session) plan(op *access.Operation) (bucket string, todo work, create bool, fault *access.Fault) {
	var h head
	if fault := ops.Head(op, &h); fault != nil {
		return "", nil, false, fault
	}
	mode := access.ReadOnly
	switch op.Kind {
	case access.KindKVGet:
		todo, fault = s.store.get(op, &h)
	case access.KindKVPut:
		todo, fault = s.store.put(op, &h)
		mode, create = access.ReadWrite, true
	case access.KindKVDelete:
		todo, fault = s.store.delete(op, &h)
		mode = access.ReadWrite
	case access.KindKVList:
		todo, fault = s.store.list(op, &h)
	default:
		fault = ops.Invalid("%.64q is no operation on a bucket", op.Kind)
	}
	if fault == nil {
		fault = s.check(h.Bucket, mode)
	}
	return h.Bucket, todo, create, fault
}

// check holds a bucket against the policy.
func (s *Session) check(bucket string, mode access.Mode) *access.Fault {
	target, add := "kv "+bucket, "kv = { "+quoted(bucket)+` = "`+string(mode)+`" }`
	policy := s.policy()
	if !policy.Grants.KV[bucket].Includes(mode) {
		return ops.NotGranted(target, add)
	}
	allow := policy.Allow
	if allow == nil {
		return nil
	}
	allowed, named := allow.KV[bucket]
	if !named {
		allowed = allow.KV["*"]
	}
	if !allowed.Includes(mode) {
		return ops.NotAllowed(target, add, allow)
	}
	return nil
}

// quoted is a key of an HCL object: as it is when it begins like an identifier.
func quoted(name string) string {
	if strings.IndexByte("0123456789-", name[0]) >= 0 {
		return strconv.Quote(name)
	}
	return name
}
