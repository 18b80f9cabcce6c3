package api

import (
	"context"
)

// KVBuckets gives the buckets of the host, by name. It needs the operator's rights, as all
// requests about buckets do.
func (c *Client) KVBuckets(ctx context.Context) ([]KVBucket, error) {
	var all []KVBucket
	for body := (KVBucketsRequest{}); ; {
		var page KVBucketsPage
		if err := c.ask(ctx, VerbKVBuckets, body, &page); err != nil {
			return nil, err
		}
		all = append(all, page.Buckets...)
		if body.After = page.Next; page.Next == "" {
			return all, nil
		}
	}
}

// KVList gives a page of the keys of a bucket that begin with a prefix, in their order: those
// after a key, or from the first for "". A bucket that does not exist has none.
func (c *Client) KVList(ctx context.Context, bucket, prefix, after string, limit int) (KVPage, error) {
	var page KVPage
	err := c.ask(ctx, VerbKVList, KVRequest{Bucket: bucket, Prefix: prefix, After: after, Limit: limit}, &page)
	return page, err
}

// KVGet gives the value of a key.
func (c *Client) KVGet(ctx context.Context, bucket, key string) (KVEntry, error) {
	var entry KVEntry
	err := c.ask(ctx, VerbKVGet, KVRequest{Bucket: bucket, Key: key}, &entry)
	return entry, err
}

// KVPut writes a key and gives its revision.
func (c *Client) KVPut(ctx context.Context, put KVPutRequest) (uint64, error) {
	var change KVChange
	err := c.ask(ctx, VerbKVPut, put, &change)
	return change.Revision, err
}

// KVDelete removes a key, which need not exist: at a revision, or whatever it has for nil.
func (c *Client) KVDelete(ctx context.Context, bucket, key string, revision *uint64) error {
	return c.ask(ctx, VerbKVDelete, KVRequest{Bucket: bucket, Key: key, Revision: revision}, &KVChange{})
}
