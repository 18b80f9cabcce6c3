package main

import (
	"context"
	"testing"

	"github.com/flowhost/flowhost/run"
	"github.com/flowhost/flowhost/sdk/sdktest"
)

// sieve counts the primes of a span in another way than the plugin does.
func sieve(from, to int) (t tally) {
	composite := make([]bool, max(to, 0))
	for n := 2; n < to; n++ {
		if composite[n] {
			continue
		}
		if n >= from {
			t.Primes++
			t.Largest = n
		}
		for m := n * n; m < to; m += n {
			composite[m] = true
		}
	}
	return t
}

func TestCount(t *testing.T) {
	t.Parallel()
	for _, s := range []span{{0, 0}, {0, 2}, {0, 3}, {0, 30}, {2, 3}, {24, 29}, {24, 28}, {49, 50}, {5, 3}, {1000, 1}, {9000, 50000}} {
		got := sdktest.Call(t.Context(), count, s, sdktest.Options{})
		if want := sieve(s.From, s.To); got.Value != want || got.Failure != nil {
			t.Errorf("%+v gave %+v %v, want %+v", s, got.Value, got.Failure, want)
		}
	}
}

// TestDiamond puts the parts together as the flow does. The counts are from
// OEIS A006880.
func TestDiamond(t *testing.T) {
	t.Parallel()
	for limit, want := range map[int]int{10: 4, 100: 25, 1000: 168, 10_000: 1229, 100_000: 9592, 1_000_000: 78498} {
		parts := sdktest.Call(t.Context(), split, request{limit}, sdktest.Options{}).Value
		left := sdktest.Call(t.Context(), count, parts.Left, sdktest.Options{}).Value
		right := sdktest.Call(t.Context(), count, parts.Right, sdktest.Options{}).Value
		got := sdktest.Call(t.Context(), join, []tally{left, right}, sdktest.Options{}).Value
		if got.Primes != want {
			t.Errorf("%d primes below %d, want %d", got.Primes, limit, want)
		}
	}
}

func TestLimits(t *testing.T) {
	t.Parallel()
	for _, limit := range []int{-1, 1, maxLimit + 1} {
		if got := sdktest.Call(t.Context(), split, request{limit}, sdktest.Options{}); got.Failure == nil || got.Failure.Code != "limit" {
			t.Errorf("limit %d gave %+v", limit, got)
		}
	}
	for _, s := range []span{{-1, 1}, {0, maxLimit + 1}} {
		if got := sdktest.Call(t.Context(), count, s, sdktest.Options{}); got.Failure == nil || got.Failure.Code != "span" {
			t.Errorf("span %+v gave %+v", s, got)
		}
	}
}

func TestCountStopsWhenCanceled(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if got := sdktest.Call(ctx, count, span{0, maxLimit}, sdktest.Options{}); got.Outcome != run.OutcomeCanceled {
		t.Errorf("outcome %s", got.Outcome)
	}
}
