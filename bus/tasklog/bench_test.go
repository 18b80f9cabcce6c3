package tasklog_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/flowhost/flowhost/bus/internal/bustest"
	"github.com/flowhost/flowhost/bus/natsd"
	"github.com/flowhost/flowhost/bus/tasklog"
	"github.com/flowhost/flowhost/run"
)

// BenchmarkLogsWrite is what a line costs the guest that writes it.
func BenchmarkLogsWrite(b *testing.B) {
	l := startLogs(b, bustest.Connect(b, bustest.StartServer(b, natsd.Config{})), tasklog.Config{})
	call, line := callOf(bustest.RunID, "price", 1), run.LogLine{Level: "info", Message: "counted what there is to count", Fields: json.RawMessage(`{"words":6}`)}
	b.ReportAllocs()
	for b.Loop() {
		l.Write(call, time.Now(), line)
	}
}

// BenchmarkLogsStore is how many lines are stored: ten of each attempt.
func BenchmarkLogsStore(b *testing.B) {
	l := startLogs(b, bustest.Connect(b, bustest.StartServer(b, natsd.Config{})), tasklog.Config{})
	line := run.LogLine{Level: "info", Message: "counted what there is to count", Fields: json.RawMessage(`{"words":6}`)}
	lines := 0
	for b.Loop() {
		id := run.NewID(time.Now())
		for range 10 {
			l.Write(callOf(id, "price", 1), time.Now(), line)
		}
		if lines += 10; lines%20_000 == 0 {
			flush(b, l)
		}
	}
	flush(b, l)
	b.ReportMetric(float64(lines)/b.Elapsed().Seconds(), "lines/s")
}

// BenchmarkLogsRead reads the 100 lines of a run out of a million messages, all of
// the same flow and the same time.
func BenchmarkLogsRead(b *testing.B) {
	nc := bustest.Connect(b, bustest.StartServer(b, natsd.Config{}))
	l := startLogs(b, nc, tasklog.Config{})
	call := callOf(bustest.RunID, "price", 1)
	for i := range 100 {
		manyLogs(b, nc, 10_000)
		l.Write(call, time.Now(), info("line %d", i))
		flush(b, l)
	}
	of := recordOf(call)
	of.CreatedAt = time.Now().Add(-time.Hour)
	for b.Loop() {
		if got := readLogs(b, l, of, run.LogQuery{}); len(got) != 100 {
			b.Fatalf("%d lines", len(got))
		}
	}
}
