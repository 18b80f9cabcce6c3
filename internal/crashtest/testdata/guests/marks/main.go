// Command marks is a plugin whose function leaves marks outside that a test can count.
package main

import (
	"errors"
	"fmt"

	"github.com/flowhost/flowhost/sdk"
	"github.com/flowhost/flowhost/sdk/sdksql"
)

func init() { sdk.Function("mark", mark) }

func main() {}

type number struct {
	N int `json:"n"`
}

// mark publishes a message, writes a row and counts, in this order: what is counted was
// published and written.
func mark(ctx sdk.Context, in number) (number, error) {
	if err := ctx.Publish("marks.made", fmt.Append(nil, in.N)); err != nil {
		return in, err
	}
	_, err := sdksql.Open(ctx, "marks").ExecContext(ctx, "INSERT INTO marks (n, times) VALUES (?, 1) ON CONFLICT (n) DO UPDATE SET times = times + 1", in.N)
	if err != nil {
		return in, err
	}
	return in, count(ctx, "made")
}

// count adds one to a key, by compare-and-set.
func count(ctx sdk.Context, key string) error {
	for {
		n, kv := 0, ctx.KV("marks")
		entry, err := kv.Get(key)
		switch {
		case err == nil:
			fmt.Sscan(string(entry.Value), &n)
		case !errors.Is(err, sdk.ErrNotFound):
			return err
		}
		if _, err = kv.Update(key, fmt.Append(nil, n+1), entry.Revision); !errors.Is(err, sdk.ErrConflict) {
			return err
		}
	}
}
