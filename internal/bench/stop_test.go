package main

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/flowhost/flowhost/run"
)

// spinners are guests that never end by themselves.
var spinners = []struct {
	name   string
	module func(b *testing.B) []byte
}{
	{"tight-loop", kept("wat/tight")},
	{"c", kept("c/small")},
	{"assemblyscript", kept("assemblyscript/guest")},
	{"go", func(b *testing.B) []byte { return goGuest(b, "flowhost") }},
}

// How long after its deadline a guest is gone, while twice as many of them loop
// as there are processors. A loop in Go that looks at the clock itself shows what
// the machine adds.
func BenchmarkDeadline(b *testing.B) {
	for _, s := range spinners {
		b.Run(s.name, func(b *testing.B) {
			binary := s.module(b)
			ways := []*way{{name: "wazero-interruptible"}, {name: "flowhost"}, {name: "go-loop"}}
			callers := []caller{newBare(b, binary, true).fresh, flowhost(b, binary), watchful}
			for b.Loop() {
				for i, call := range callers {
					late, err := overdue(b.Context(), call, 2*runtime.GOMAXPROCS(0), 10)
					if err != nil {
						b.Fatal(err)
					}
					ways[i].took = append(ways[i].took, late...)
				}
			}
			tabulate(b, ways, ways[1])
		})
	}
}

// watchful loops until the deadline, and gives way about as often as a guest does.
func watchful(ctx context.Context, _ string, _ []byte) ([]byte, error) {
	const slice = 100 * time.Microsecond
	deadline, _ := ctx.Deadline()
	for yielded := time.Now(); ; {
		now := time.Now()
		if !now.Before(deadline) {
			return nil, context.DeadlineExceeded
		}
		if now.Sub(yielded) > slice {
			runtime.Gosched()
			yielded = time.Now()
		}
	}
}

// overdue gives by how much calls were late, of which so many run at a time.
func overdue(ctx context.Context, call caller, parallel, each int) ([]time.Duration, error) {
	const allowed = 30 * time.Millisecond
	late := make([][]time.Duration, parallel)
	wrong := make([]error, parallel)
	var workers sync.WaitGroup
	for w := range parallel {
		workers.Go(func() {
			for range each {
				deadline := time.Now().Add(allowed)
				ctx, cancel := context.WithDeadlineCause(ctx, deadline, run.ErrDeadline)
				_, err := call(ctx, "spin", nil)
				late[w] = append(late[w], time.Since(deadline))
				cancel()
				if err == nil {
					wrong[w] = errors.New("an endless loop ended by itself")
				}
			}
		})
	}
	workers.Wait()
	return slices.Concat(late...), errors.Join(wrong...)
}

// How long the host's garbage collector takes while guests loop on all
// processors. It cannot begin before each of them has been stopped for a moment.
// wazero without interruption is not among the ways that are measured in turn: its
// guest, which ends after a second or so, lets nothing happen until then.
func BenchmarkCollection(b *testing.B) {
	binary := keptGuest(b, "wat/tight")
	ways := []*way{{name: "no-guest"}, {name: "wazero-interruptible"}, {name: "flowhost"}}
	stops := []*way{{name: "no-guest-pause"}, {name: "wazero-interruptible-pause"}, {name: "flowhost-pause"}}
	callers := []caller{nil, newBare(b, binary, true).fresh, flowhost(b, binary)}
	for b.Loop() {
		for i, call := range callers {
			took, pauses := collections(b.Context(), call, runtime.GOMAXPROCS(0), 20)
			ways[i].took = append(ways[i].took, took...)
			stops[i].took = append(stops[i].took, pauses...)
		}
	}
	plain := newBare(b, binary, false)
	var guest sync.WaitGroup
	begin := time.Now()
	guest.Go(func() { plain.fresh(b.Context(), "run", []byte("1000000000")) })
	time.Sleep(50 * time.Millisecond) // it is at work now
	ways = append(ways, &way{name: "wazero", took: []time.Duration{collect()}})
	guest.Wait()
	b.Logf("the guest of wazero without interruption ran for %v", time.Since(begin).Round(time.Millisecond))
	tabulate(b, ways, ways[0])
	tabulate(b, stops, stops[0])
}

// collections gives how long collections took from beginning to end, and how long
// the program stood still in each, stopping included.
func collections(ctx context.Context, call caller, parallel, times int) (took, pauses []time.Duration) {
	ctx, stop := context.WithCancelCause(ctx)
	var guests sync.WaitGroup
	if call != nil {
		for range parallel {
			guests.Go(func() { call(ctx, "spin", nil) })
		}
		time.Sleep(20 * time.Millisecond) // they are at work now
	}
	for range times {
		took = append(took, collect())
		var stats debug.GCStats
		debug.ReadGCStats(&stats)
		pauses = append(pauses, stats.Pause[0])
	}
	stop(run.ErrCanceled)
	guests.Wait()
	return took, pauses
}

func collect() time.Duration {
	begin := time.Now()
	runtime.GC()
	return time.Since(begin)
}

// sizes prints bytes of memory, by name.
func sizes(b *testing.B, names []string, bytes []int64) {
	b.Helper()
	var table strings.Builder
	for i, name := range names {
		fmt.Fprintf(&table, "\n%-24s %10.1f KiB", name, float64(bytes[i])/1024)
		b.ReportMetric(float64(bytes[i])/1024, name+"-KiB")
	}
	b.ReportMetric(0, "ns/op")
	b.Log(table.String())
}
