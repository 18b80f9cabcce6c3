package main

import (
	"fmt"
	"runtime"
	"testing"
	"time"
)

// demand is what a scheduler has to do in one measurement.
type demand struct {
	armed int // timers, those that fire included; the others are hours away
	fires int // timers that fire, one after the other
	rate  int // how many of them are due in a second; 0: all at one instant
	busy  int // goroutines that compute all the time, as guests do
}

// How late callbacks start, and how many too early, with few and many timers
// armed, at a moderate and a high rate, and while some or all processors compute.
func BenchmarkLateness(b *testing.B) {
	processors := runtime.GOMAXPROCS(0)
	for _, d := range []demand{
		{armed: 100_000, fires: 10_000, rate: 10_000},
		{armed: 1_000_000, fires: 10_000, rate: 10_000},
		{armed: 1_000_000, fires: 100_000, rate: 100_000},
		{armed: 100_000, fires: 10_000, rate: 10_000, busy: 1},
		{armed: 100_000, fires: 10_000, rate: 10_000, busy: processors},
	} {
		b.Run(fmt.Sprintf("armed=%s/rate=%s/busy=%d", short(d.armed), short(d.rate), d.busy), func(b *testing.B) {
			d.each(b, func(b *testing.B, o *outcome) {
				b.ReportMetric(micros(quantile(o.late, 0.5)), "p50-µs")
				b.ReportMetric(micros(quantile(o.late, 0.99)), "p99-µs")
				b.ReportMetric(float64(o.early), "early")
				if d.busy == 0 {
					b.ReportMetric(micros(o.processor)/float64(len(o.late)), "cpu-µs/fire")
				}
			})
		})
	}
}

// How long it takes until the last of many callbacks has started that are due at
// one instant.
func BenchmarkHerd(b *testing.B) {
	herd := demand{armed: 100_000, fires: 100_000}
	herd.each(b, func(b *testing.B, o *outcome) {
		b.ReportMetric(ms(quantile(o.late, 0.5)), "half-ms")
		b.ReportMetric(ms(quantile(o.late, 1)), "last-ms")
		b.ReportMetric(float64(o.early), "early")
	})
}

// each runs a benchmark of each contender under the demand, or as much of it as it
// can bear.
func (d demand) each(b *testing.B, report func(*testing.B, *outcome)) {
	for _, c := range contenders {
		b.Run(c.label(d.armed), func(b *testing.B) {
			mine := d
			mine.armed = min(d.armed, c.most)
			mine.fires = min(d.fires, mine.armed)
			var o outcome
			for b.Loop() {
				leaveNothing(b, func() { o.add(b, mine.measure(b, c)) })
			}
			report(b, &o)
			b.ReportMetric(float64(o.lost), "lost")
			b.ReportMetric(0, "ns/op")
		})
	}
}

// outcome is what became of the timers that were to fire.
type outcome struct {
	late      []time.Duration // of those that fired
	early     int
	lost      int
	processor time.Duration // what the process used from the first due time to the last fire
}

func (o *outcome) add(b *testing.B, r *round) {
	b.Helper()
	for i := range r.late {
		switch late := time.Duration(r.late[i].Load()); {
		case late == lost:
			o.lost++
		case late < 0:
			o.early++
			fallthrough
		default:
			o.late = append(o.late, late)
		}
	}
	o.processor += r.processor
	if len(o.late) == 0 {
		b.Fatal("nothing fired")
	}
}
