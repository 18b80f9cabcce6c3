package main

import (
	"encoding/json"
	"errors"
	"time"

	"github.com/flowhost/flowhost/sdk"
)

// Key is a key of a bucket.
type Key struct {
	Bucket string `json:"bucket"`
	Key    string `json:"key"`
}

// Entry is the value of a key.
type Entry struct {
	Found    bool            `json:"found"`
	Value    json.RawMessage `json:"value"` // null if it was not found
	Revision uint64          `json:"revision"`
}

// get takes what is no JSON as text.
func get(ctx sdk.Context, in Key) (Entry, error) {
	entry, err := ctx.KV(in.Bucket).Get(in.Key)
	switch {
	case errors.Is(err, sdk.ErrNotFound):
		return Entry{Value: json.RawMessage("null")}, nil
	case err != nil:
		return Entry{}, err
	}
	value := json.RawMessage(entry.Value)
	if !json.Valid(value) {
		value, err = json.Marshal(string(entry.Value))
	}
	return Entry{Found: true, Value: value, Revision: entry.Revision}, err
}

// Pair is a value for a key.
type Pair struct {
	Key
	Value    json.RawMessage `json:"value"`
	Revision *uint64         `json:"revision,omitempty"` // that the key must have; 0: it must not exist. Default: whatever it has
	TTL      string          `json:"ttl,omitempty"`      // "24h"; default: it stays
}

// Stored is the revision of a value that was stored.
type Stored struct {
	Revision uint64 `json:"revision"`
}

func put(ctx sdk.Context, in Pair) (Stored, error) {
	kv := ctx.KV(in.Bucket)
	var ttl time.Duration
	if in.TTL != "" {
		var err error
		if ttl, err = time.ParseDuration(in.TTL); err != nil || ttl <= 0 {
			return Stored{}, sdk.Fail("input", "ttl %q is not a duration such as \"24h\"", in.TTL)
		}
	}
	var revision uint64
	var err error
	switch {
	case in.Revision != nil && ttl > 0:
		return Stored{}, sdk.Fail("input", "revision and ttl exclude each other")
	case in.Revision != nil:
		revision, err = kv.Update(in.Key.Key, in.Value, *in.Revision)
	case ttl > 0:
		revision, err = kv.PutFor(in.Key.Key, in.Value, ttl)
	default:
		revision, err = kv.Put(in.Key.Key, in.Value)
	}
	return Stored{revision}, err
}

func remove(ctx sdk.Context, in Key) (struct{}, error) {
	return struct{}{}, ctx.KV(in.Bucket).Delete(in.Key)
}

// Prefix is the beginning of keys.
type Prefix struct {
	Bucket string `json:"bucket"`
	Prefix string `json:"prefix,omitempty"`
	Limit  int    `json:"limit,omitempty"` // default 1 000
}

func list(ctx sdk.Context, in Prefix) ([]string, error) {
	keys, err := ctx.KV(in.Bucket).Keys(in.Prefix, in.Limit)
	if keys == nil {
		keys = []string{}
	}
	return keys, err
}

// Addition is a number to add to that of a key.
type Addition struct {
	Key
	By int64 `json:"by,omitempty"` // default 1
}

// Sum is the number of a key after an addition.
type Sum struct {
	Value int64 `json:"value"`
}

// contention is how often a number is read again that others change as well.
const contention = 100

func count(ctx sdk.Context, in Addition) (Sum, error) {
	if in.By == 0 {
		in.By = 1
	}
	kv := ctx.KV(in.Bucket)
	for range contention {
		entry, err := kv.Get(in.Key.Key)
		var n int64
		switch {
		case errors.Is(err, sdk.ErrNotFound):
		case err != nil:
			return Sum{}, err
		default:
			if err := json.Unmarshal(entry.Value, &n); err != nil {
				return Sum{}, sdk.Fail("not_a_number", "key %q of bucket %q is not an integer", in.Key.Key, in.Bucket)
			}
		}
		text, _ := json.Marshal(n + in.By)
		_, err = kv.Update(in.Key.Key, text, entry.Revision)
		if !errors.Is(err, sdk.ErrConflict) {
			return Sum{n + in.By}, err
		}
	}
	return Sum{}, sdk.Retry(sdk.Fail("contention", "others change key %q of bucket %q all the time", in.Key.Key, in.Bucket), 0)
}
