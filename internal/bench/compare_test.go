package main

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// way is one way to do the same as others.
type way struct {
	name string // without spaces: it is part of a unit
	call func() error
	took []time.Duration
}

// turn is for how long one way is measured until it is the next one's turn: long
// enough for warm caches, short enough for all of them to see the same neighbors
// on the machine.
const turn = 20 * time.Millisecond

// compare measures the ways, each for a turn, until the benchmark's time is over.
func compare(b *testing.B, ways []*way) {
	b.Helper()
	warmUp(b, ways)
	for b.Loop() {
		for _, w := range ways {
			if err := w.measure(turn); err != nil {
				b.Fatalf("%s: %v", w.name, err)
			}
		}
	}
}

// compareLong measures ways whose calls take long: one call in turn, several times.
func compareLong(b *testing.B, ways []*way) {
	b.Helper()
	const rounds = 7
	warmUp(b, ways)
	for b.Loop() {
		for range rounds {
			for _, w := range ways {
				if err := w.measure(0); err != nil {
					b.Fatalf("%s: %v", w.name, err)
				}
			}
		}
	}
}

// warmUp sees that all ways work.
func warmUp(b *testing.B, ways []*way) {
	b.Helper()
	for _, w := range ways {
		if err := w.call(); err != nil {
			b.Fatalf("%s: %v", w.name, err)
		}
	}
}

// measure makes calls for a turn, one at least.
func (w *way) measure(turn time.Duration) error {
	for end := time.Now().Add(turn); ; {
		begin := time.Now()
		if err := w.call(); err != nil {
			return err
		}
		w.took = append(w.took, time.Since(begin))
		if !time.Now().Before(end) {
			return nil
		}
	}
}

// median is in microseconds.
func (w *way) median() float64 { return micros(quantile(w.took, 0.5)) }

// tabulate prints the ways beside the one that all are compared with, and reports
// their medians.
func tabulate(b *testing.B, ways []*way, base *way) {
	b.Helper()
	var table strings.Builder
	for _, w := range ways {
		fmt.Fprintf(&table, "\n%-24s p50 %12.1f µs  p99 %12.1f µs  %8.2f × %s  %7d calls",
			w.name, w.median(), micros(quantile(w.took, 0.99)), w.median()/base.median(), base.name, len(w.took))
		b.ReportMetric(w.median(), w.name+"-µs")
	}
	b.ReportMetric(0, "ns/op") // a round of all ways says nothing
	b.Log(table.String())
}

func micros(d time.Duration) float64 { return float64(d) / float64(time.Microsecond) }
