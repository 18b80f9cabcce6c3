package main

import (
	"context"
	"encoding/json"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/flowhost/flowhost/host"
	"github.com/flowhost/flowhost/run"
)

// kind is one of the sorts of calls that come to a plugin mixed.
type kind struct {
	name  string
	share int // of a hundred calls
	call  run.Call
	took  []time.Duration
}

// BenchmarkMixed is calls of one Go guest that differ in what they write: most are
// small, few are large. What the pages that a large one has made private cost the
// small ones after it shows in their times.
func BenchmarkMixed(b *testing.B) {
	h, call := newHost(b, host.Config{}, goGuest(b, "flowhost"))
	of := func(function string, items int) run.Call {
		call := call
		call.Function, call.Input = function, json.RawMessage(orderOf(items))
		return call
	}
	for _, mix := range []struct {
		name  string
		kinds []*kind
	}{
		{"alike", []*kind{{name: "2-items", share: 100, call: of("echo", 2)}}},
		{"growing", []*kind{
			{name: "2-items", share: 80, call: of("echo", 2)},
			{name: "10-items", share: 20, call: of("echo", 10)},
		}},
		{"mixed", []*kind{
			{name: "2-items", share: 70, call: of("echo", 2)},
			{name: "nothing", share: 15, call: of("nothing", 0)},
			{name: "30-items", share: 12, call: of("echo", 30)},
			{name: "1000-items", share: 3, call: of("echo", 1000)},
		}},
	} {
		b.Run(mix.name, func(b *testing.B) {
			random := rand.New(rand.NewPCG(1, 2))
			for b.Loop() {
				for end := time.Now().Add(turn); time.Now().Before(end); {
					if err := anyKind(mix.kinds, random.IntN(100)).measure(b.Context(), h); err != nil {
						b.Fatal(err)
					}
				}
			}
			b.ReportMetric(0, "ns/op")
			var all time.Duration
			calls := 0
			for _, k := range mix.kinds {
				calls += len(k.took)
				most := 10 * quantile(k.took, 0.5) // other programs' turns do not count
				for _, d := range k.took {
					all += min(d, most)
				}
				b.ReportMetric(micros(quantile(k.took, 0.5)), k.name+"-p50-µs")
				b.ReportMetric(micros(quantile(k.took, 0.99)), k.name+"-p99-µs")
			}
			b.ReportMetric(micros(all)/float64(calls), "mean-µs")
			b.ReportMetric(float64(h.Stats().Memory)/1024, "idle-KiB")
		})
	}
}

// anyKind is the kind at a number below 100.
func anyKind(kinds []*kind, number int) *kind {
	i := slices.IndexFunc(kinds, func(k *kind) bool {
		number -= k.share
		return number < 0
	})
	return kinds[i]
}

func (k *kind) measure(ctx context.Context, h *host.Host) error {
	begin := time.Now()
	result, err := h.Invoke(ctx, k.call)
	k.took = append(k.took, time.Since(begin))
	if err == nil && result.Failure != nil {
		err = result.Failure
	}
	return err
}
