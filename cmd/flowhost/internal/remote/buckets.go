package remote

import (
	"context"

	"github.com/flowhost/flowhost/bus/api"
	"github.com/flowhost/flowhost/cmd/flowhost/internal/cli"
)

// keyPage is how many keys one request asks for.
const keyPage = 1000

// EachKey gives the keys of a bucket that begin with a prefix, in their order: as many as
// limit, or all for 0. more reports whether there are others. It is an error if the host has
// no such bucket.
func EachKey(ctx context.Context, client *api.Client, bucket, prefix string, limit int, give func([]api.KVKey) error) (more bool, err error) {
	after := ""
	for left := limit; ; {
		size := keyPage
		if limit > 0 {
			size = min(left, size)
		}
		page, err := client.KVList(ctx, bucket, prefix, after, size)
		if err != nil {
			return false, err
		}
		if after == "" && len(page.Keys) == 0 {
			return false, checkBucket(ctx, client, bucket)
		}
		if err := give(page.Keys); err != nil {
			return false, err
		}
		left -= len(page.Keys)
		if page.Next == "" || limit > 0 && left <= 0 {
			return page.Next != "", nil
		}
		after = page.Next
	}
}

// checkBucket is an error if the host does not have a bucket.
func checkBucket(ctx context.Context, client *api.Client, bucket string) error {
	all, err := client.KVBuckets(ctx)
	if err != nil {
		return err
	}
	var names []string
	for _, b := range all {
		if b.Bucket == bucket {
			return nil
		}
		names = append(names, b.Bucket)
	}
	return cli.Exitf(cli.ExitInvalid, "the host has no bucket %q%s", bucket, cli.Suggest(bucket, names))
}

// CompleteBuckets completes the names of buckets.
func CompleteBuckets(ctx context.Context, client *api.Client, _ []string) []string {
	all, err := client.KVBuckets(ctx)
	if err != nil {
		return nil
	}
	names := make([]string, len(all))
	for i, b := range all {
		names[i] = b.Bucket
	}
	return names
}

// CompleteKeys completes the keys of the bucket that the first argument names.
func CompleteKeys(ctx context.Context, client *api.Client, before []string) []string {
	page, err := client.KVList(ctx, before[0], "", "", 100)
	if err != nil {
		return nil
	}
	names := make([]string, len(page.Keys))
	for i, k := range page.Keys {
		names[i] = k.Key
	}
	return names
}
