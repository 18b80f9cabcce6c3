package serve

import (
	"context"

	"github.com/nats-io/nats.go"

	"github.com/flowhost/flowhost/bus/api"
	"github.com/flowhost/flowhost/bus/kv"
	"github.com/flowhost/flowhost/run/access"
)

// buckets are the key-value buckets of tasks, for the operator: each is granted.
type buckets struct{ store *kv.Store }

// openBuckets returns the buckets of a connection's account. New ones have so many replicas.
func openBuckets(nc *nats.Conn, replicas int) (*buckets, error) {
	store, err := kv.New(kv.Config{Conn: nc, Replicas: max(replicas, 1)})
	return &buckets{store}, err
}

// All implements intake.Buckets.
func (b *buckets) All(ctx context.Context) ([]api.KVBucket, error) {
	found, err := b.store.Buckets(ctx)
	if err != nil {
		return nil, err
	}
	var all []api.KVBucket
	for _, f := range found {
		all = append(all, api.KVBucket{Bucket: f.Name, Keys: f.Keys, Bytes: f.Bytes, MaxBytes: f.MaxBytes})
	}
	return all, nil
}

// Do implements intake.Buckets.
func (b *buckets) Do(ctx context.Context, bucket string, op *access.Operation) access.Answer {
	granted := access.Grants{KV: map[string]access.Mode{bucket: access.ReadWrite}}
	return b.store.Session(access.Policy{Grants: granted}.Always).Do(ctx, op)
}
