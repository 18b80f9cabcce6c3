package api

import (
	"cmp"
	"time"

	"github.com/flowhost/flowhost/run"
)

// KVRequest asks for something to be done with a bucket or a key. Which members a verb takes
// is decided where it is done: they are those of the operations of guests.
type KVRequest struct {
	Bucket   string  `json:"bucket"`
	Key      string  `json:"key,omitempty"`
	Revision *uint64 `json:"revision,omitempty"` // that the key must have; 0: it must not exist
	TTL      int64   `json:"ttl_ms,omitempty"`   // after which a key is deleted
	Prefix   string  `json:"prefix,omitempty"`
	After    string  `json:"after,omitempty"` // cursor: only keys after this one
	Limit    int     `json:"limit,omitempty"`
}

// Check refuses a request that cannot be right, with a *run.RequestError.
func (b *KVRequest) Check() error {
	if b.Bucket == "" {
		return run.Requestf(run.RequestParams, "bucket: it is required")
	}
	return nil
}

// KVPutRequest is a KVRequest with a value.
type KVPutRequest struct {
	KVRequest
	Value []byte `json:"value"`
}

// KVEntry is the value of a key.
type KVEntry struct {
	Revision uint64    `json:"revision"`
	Created  time.Time `json:"created"` // when the value was put
	Value    []byte    `json:"value"`
}

// KVChange is the answer to a put or a delete.
type KVChange struct {
	Revision uint64 `json:"revision"` // 0 for a delete in a bucket that does not exist
}

// KVKey is one key of a list.
type KVKey struct {
	Key      string `json:"key"`
	Revision uint64 `json:"revision"`
}

// KVPage is the answer to a list of keys.
type KVPage struct {
	Keys []KVKey `json:"keys"`
	Next string  `json:"next,omitempty"` // cursor of those that follow
}

// KVBucketsRequest asks for the buckets after one.
type KVBucketsRequest struct {
	After string `json:"after"` // cursor: only buckets whose names come later
}

// Check refuses a request that cannot be right, with a *run.RequestError.
func (*KVBucketsRequest) Check() error { return nil }

// KVBucket is a bucket.
type KVBucket struct {
	Bucket   string `json:"bucket"`
	Keys     uint64 `json:"keys"`                // also those that were deleted within the last hour
	Bytes    uint64 `json:"bytes"`               // that it takes
	MaxBytes int64  `json:"max_bytes,omitempty"` // that it may take; 0: it has no bound of its own
}

// CompareKVBuckets orders buckets by name.
func CompareKVBuckets(a, b KVBucket) int { return cmp.Compare(a.Bucket, b.Bucket) }

// KVBucketsPage is the answer to a request for buckets.
type KVBucketsPage struct {
	Buckets []KVBucket `json:"buckets"`
	Next    string     `json:"next,omitempty"` // cursor of what did not fit
}
