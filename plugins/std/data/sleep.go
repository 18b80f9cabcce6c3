package main

import (
	"slices"
	"time"

	"github.com/flowhost/flowhost/sdk"
)

// Wait is a duration.
type Wait struct {
	For string `json:"for"` // "90s"
}

func sleep(ctx sdk.Context, in Wait) (struct{}, error) {
	d, err := time.ParseDuration(in.For)
	if err != nil || d < 0 {
		return struct{}{}, sdk.Fail("input", "for is %q, and must be a duration such as \"90s\"", in.For)
	}
	if left, limited := ctx.Deadline(); limited && time.Until(left) < d {
		return struct{}{}, sdk.Fail("input", "the attempt ends before %s are over: raise the timeout of the task", d)
	}
	select {
	case <-time.After(d):
		return struct{}{}, nil
	case <-ctx.Done():
		return struct{}{}, ctx.Err()
	}
}

func sorted(texts []string) []string {
	slices.Sort(texts)
	return texts
}
