package kv

import (
	"context"
	"strings"

	"github.com/nats-io/nats.go/jetstream"
)

// Bucket describes a bucket.
type Bucket struct {
	Name     string // as guests call it
	Keys     uint64 // also those that were deleted within the last hour
	Bytes    uint64 // that it takes
	MaxBytes int64  // that it may take; 0: it has no bound of its own
}

// Buckets lists the buckets, in any order.
func (s *Store) Buckets(ctx context.Context) ([]Bucket, error) {
	ctx, cancel := s.timed(ctx)
	defer cancel()
	lister := s.js.ListStreams(ctx, jetstream.WithStreamListSubject("$KV.*.>"))
	var all []Bucket
	for info := range lister.Info() {
		name, own := strings.CutPrefix(info.Config.Name, "KV_"+natsName(""))
		if !own || CheckBucket(name) != "" {
			continue // somebody else's
		}
		all = append(all, Bucket{Name: name, Keys: info.State.Msgs, Bytes: info.State.Bytes, MaxBytes: max(info.Config.MaxBytes, 0)})
	}
	return all, lister.Err()
}
