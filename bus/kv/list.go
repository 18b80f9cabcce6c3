package kv

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/flowhost/flowhost/bus/internal/ops"
	"github.com/flowhost/flowhost/run/access"
)

// MaxList is how many keys one list returns at most, and by default.
const MaxList = 1000

// listed is one key of a list.
type listed struct {
	Key      string `json:"key"`
	Revision uint64 `json:"revision"`
}

// listHead is the head of the answer to a list.
type listHead struct {
	Count int  `json:"count"`
	More  bool `json:"more"` // there are keys after the last one
}

// list reads keys in their order: head {bucket, prefix, after, limit} → {count, more}, and
// an array of {key, revision} as body. The next page is asked for with the last key as
// after. Each list goes over all keys that begin like prefix up to its last dot.
func (s *Store) list(op *access.Operation, h *head) (work, *access.Fault) {
	if h.Key != "" || h.Revision != nil || h.TTL != 0 {
		return nil, ops.Invalid("kv.list takes neither key, revision nor ttl_ms")
	}
	for _, why := range []string{CheckBucket(h.Bucket), checkPrefix(h.Prefix), checkPrefix(h.After)} {
		if fault := invalid(op.Kind, why); fault != nil {
			return nil, fault
		}
	}
	if h.Limit < 0 || h.Limit > MaxList {
		return nil, ops.Invalid("kv.list failed: limit is negative or more than %d: ask for further keys with after", MaxList)
	}
	if fault := ops.NoBody(op); fault != nil {
		return nil, fault
	}
	p := page{prefix: h.Prefix, after: h.After, limit: h.Limit, keys: []listed{}}
	if p.limit == 0 {
		p.limit = MaxList
	}
	return func(ctx context.Context, b *bucket) (access.Answer, error) {
		if b != nil {
			if err := s.scan(ctx, b, &p); err != nil {
				return access.Answer{}, err
			}
		}
		more := len(p.keys) > p.limit
		if more {
			p.keys = p.keys[:p.limit]
		}
		for size := p.bytes(); size > ops.MaxBody; more = true {
			last := len(p.keys) - 1
			size -= p.keys[last].bytes()
			p.keys = p.keys[:last]
		}
		body, err := json.Marshal(p.keys)
		return ops.Done(listHead{len(p.keys), more}, body), err
	}, nil
}

// page collects the first keys of a list in their order, one more than are asked for.
type page struct {
	prefix, after string
	limit         int
	keys          []listed
}

func (p *page) add(key string, revision uint64) {
	if !strings.HasPrefix(key, p.prefix) || p.after != "" && key <= p.after {
		return
	}
	at, again := slices.BinarySearchFunc(p.keys, key, func(l listed, key string) int { return strings.Compare(l.Key, key) })
	switch {
	case again: // it was put again while the list was read
		p.keys[at].Revision = revision
		return
	case at > p.limit:
		return
	}
	p.keys = slices.Insert(p.keys, at, listed{key, revision})
	p.keys = p.keys[:min(len(p.keys), p.limit+1)]
}

// bytes bounds the size of a key in the answer.
func (l *listed) bytes() int { return len(l.Key) + len(`{"key":"","revision":18446744073709551615},`) }

func (p *page) bytes() int {
	size := len("[]")
	for i := range p.keys {
		size += p.keys[i].bytes()
	}
	return size
}

// scan hands all keys below the tokens of the prefix to the page, without their values.
func (s *Store) scan(ctx context.Context, b *bucket, p *page) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	timed, done := s.timed(ctx)
	keys, err := s.js.KeyValue(timed, natsName(b.name))
	done()
	if err != nil {
		return err
	}
	filter := p.prefix[:strings.LastIndexByte(p.prefix, '.')+1] + ">"
	started := time.AfterFunc(s.cfg.Timeout, cancel)
	watcher, err := keys.WatchFiltered(ctx, []string{filter}, jetstream.MetaOnly(), jetstream.IgnoreDeletes())
	if err != nil {
		started.Stop()
		return err
	}
	started.Stop()
	// The goroutine of the watch may be waiting to hand over a key.
	defer func() {
		_ = watcher.Stop() // fails on a connection that is closed, which ends the watch as well
		for range watcher.Updates() {
		}
	}()
	silent := time.NewTimer(s.cfg.Timeout)
	defer silent.Stop()
	for {
		select {
		case entry, open := <-watcher.Updates():
			switch {
			case !open:
				return nats.ErrConnectionClosed
			case entry == nil:
				return nil // all that were there
			}
			p.add(entry.Key(), entry.Revision())
			silent.Reset(s.cfg.Timeout)
		case <-silent.C:
			return nats.ErrTimeout
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}
