package sdk

import (
	"time"

	"github.com/flowhost/flowhost/sdk/internal/guest"
)

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
	Key      string
	Value    []byte
	Revision uint64
	Created  time.Time
}

// head begins the head of an operation.
func (k KV) head(key string) *guest.Head {
	head := new(guest.Head)
	head.Text("bucket", k.bucket)
	head.Text("key", key)
	return head
}

// member takes a member of the head of an answer.
func (e *Entry) member(name string, value []byte) {
	switch name {
	case "revision":
		e.Revision = uint64(guest.IntOf(value))
	case "created":
		e.Created, _ = time.Parse(time.RFC3339Nano, guest.TextOf(value))
	}
}

// Get returns the value of a key, or an error that is [ErrNotFound].
func (k KV) Get(key string) (Entry, error) {
	entry := Entry{Key: key}
	var err error
	entry.Value, err = k.call.operate("kv.get", k.head(key), nil, entry.member)
	return entry, err
}

// Put sets the value of a key and returns its revision.
func (k KV) Put(key string, value []byte) (uint64, error) {
	return k.put(k.head(key), value)
}

// PutFor does so for a limited time.
func (k KV) PutFor(key string, value []byte, ttl time.Duration) (uint64, error) {
	head := k.head(key)
	head.Int("ttl_ms", ceilMilliseconds(ttl))
	return k.put(head, value)
}

// Create sets the value of a key that does not exist. The error is [ErrConflict] for one
// that does.
func (k KV) Create(key string, value []byte) (uint64, error) { return k.Update(key, value, 0) }

// Update sets the value of a key whose last revision is the given one. The error is
// [ErrConflict] for any other.
func (k KV) Update(key string, value []byte, revision uint64) (uint64, error) {
	head := k.head(key)
	head.Uint("revision", revision)
	return k.put(head, value)
}

func (k KV) put(head *guest.Head, value []byte) (uint64, error) {
	var entry Entry
	_, err := k.call.operate("kv.put", head, value, entry.member)
	return entry.Revision, err
}

// Delete deletes a key. One that does not exist is no error.
func (k KV) Delete(key string) error {
	_, err := k.call.operate("kv.delete", k.head(key), nil, nil)
	return err
}

// Keys returns the keys that begin with prefix, in their order, up to limit; 0 is the
// host's bound, 1 000.
func (k KV) Keys(prefix string, limit int) ([]string, error) {
	head := k.head("")
	head.Text("prefix", prefix)
	head.Int("limit", int64(limit))
	body, err := k.call.operate("kv.list", head, nil, nil)
	var keys []string
	guest.Elements(body, func(entry []byte) {
		guest.Members(entry, func(name string, value []byte) {
			if name == "key" {
				keys = append(keys, guest.TextOf(value))
			}
		})
	})
	return keys, err
}
