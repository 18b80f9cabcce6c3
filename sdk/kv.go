package sdk

import "time"

// KV is a bucket of keys and values, which outlives runs and is shared by all flows that
// are granted it.
type KV struct {
	call   call
	bucket string
}

// KV implements Context.
func (c call) KV(bucket string) KV { return KV{c, bucket} }

// Entry is a value of a bucket.
type Entry struct {
	Key      string    `json:"key"`
	Value    []byte    `json:"-"`
	Revision uint64    `json:"revision"`
	Created  time.Time `json:"created"`
}

type kvHead struct {
	Bucket   string  `json:"bucket"`
	Key      string  `json:"key,omitempty"`
	Revision *uint64 `json:"revision,omitempty"`
	TTL      int64   `json:"ttl_ms,omitempty"`
	Prefix   string  `json:"prefix,omitempty"`
	Limit    int     `json:"limit,omitempty"`
}

// Get returns the value of a key, or an error that is [ErrNotFound].
func (k KV) Get(key string) (Entry, error) {
	entry := Entry{Key: key}
	value, err := k.call.operate("kv.get", kvHead{Bucket: k.bucket, Key: key}, nil, &entry)
	entry.Value = value
	return entry, err
}

// Put sets the value of a key and returns its revision.
func (k KV) Put(key string, value []byte) (uint64, error) {
	return k.put(kvHead{Bucket: k.bucket, Key: key}, value)
}

// PutFor does so for a limited time.
func (k KV) PutFor(key string, value []byte, ttl time.Duration) (uint64, error) {
	return k.put(kvHead{Bucket: k.bucket, Key: key, TTL: ceilMilliseconds(ttl)}, value)
}

// Create sets the value of a key that does not exist. The error is [ErrConflict] for one
// that does.
func (k KV) Create(key string, value []byte) (uint64, error) { return k.Update(key, value, 0) }

// Update sets the value of a key whose last revision is the given one. The error is
// [ErrConflict] for any other.
func (k KV) Update(key string, value []byte, revision uint64) (uint64, error) {
	return k.put(kvHead{Bucket: k.bucket, Key: key, Revision: &revision}, value)
}

func (k KV) put(head kvHead, value []byte) (uint64, error) {
	var entry Entry
	_, err := k.call.operate("kv.put", head, value, &entry)
	return entry.Revision, err
}

// Delete deletes a key. One that does not exist is no error.
func (k KV) Delete(key string) error {
	_, err := k.call.operate("kv.delete", kvHead{Bucket: k.bucket, Key: key}, nil, nil)
	return err
}

// Keys returns the keys that begin with prefix, in their order, up to limit; 0 is the
// host's bound, 1 000.
func (k KV) Keys(prefix string, limit int) ([]string, error) {
	var list struct {
		Keys []string `json:"keys"`
	}
	_, err := k.call.operate("kv.list", kvHead{Bucket: k.bucket, Prefix: prefix, Limit: limit}, nil, &list)
	return list.Keys, err
}
