// Command keeper is a plugin that keeps what its input says, as artifacts and in a bucket.
package main

import (
	"fmt"
	"strings"

	"github.com/flowhost/flowhost/sdk"
)

func init() {
	sdk.Function("store", store)
	sdk.Function("count", count)
	sdk.Function("pages", pages)
}

func main() {}

type file struct {
	Name string `json:"name"`
	Text string `json:"text"`
	Size int    `json:"size"`
}

// store stores files of a text and zeros up to a size.
func store(ctx sdk.Context, files []file) ([]sdk.Artifact, error) {
	var all []sdk.Artifact
	for _, f := range files {
		w, err := ctx.Artifact(f.Name)
		if err != nil {
			return nil, err
		}
		fmt.Fprint(w, f.Text)
		part := make([]byte, 1<<16)
		for left := f.Size - len(f.Text); left > 0; left -= len(part) {
			if _, err := w.Write(part[:min(left, len(part))]); err != nil {
				return nil, err
			}
		}
		a, err := w.Commit()
		if err != nil {
			return nil, err
		}
		a.ContentType = "text/plain"
		all = append(all, a)
	}
	return all, nil
}

// count counts calls in the bucket counters.
func count(ctx sdk.Context, key string) (uint64, error) {
	return ctx.KV("counters").Put(key, []byte("counted\n"))
}

// pages returns so many pages of 64 KiB, and then the word end.
func pages(_ sdk.Context, n int) ([]string, error) {
	all := make([]string, n, n+1)
	for i := range all {
		all[i] = strings.Repeat("x", 64<<10)
	}
	return append(all, "end"), nil
}
