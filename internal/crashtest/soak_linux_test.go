//go:build soak

package crashtest_test

import (
	"context"
	"flag"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/flowhost/flowhost/internal/crashtest"
)

var (
	minutes = flag.Float64("minutes", 30, "how long to soak")
	load    = flag.Float64("load", 0.8, "share of the measured capacity")
)

const soakFlow = `
flow "small" {
  task "echo" {
    plugin   = "./small.wasm"
    function = "echo"
    input    = { n = trigger.payload.n }
  }
}
`

// soakers is how many requests may wait at a time; the host has a goroutine for
// each.
const soakers = 512

// bounds of growth. Memory may grow with what is kept for each event, as long as
// the streams of events and of history fill up; the journal is cut off at the last
// snapshot.
var bounds = []crashtest.Bound{
	{Name: "resident memory", Of: func(u crashtest.Usage) int64 { return u.Resident }, Factor: 1.2, Plus: 32 << 20},
	{Name: "open files", Of: func(u crashtest.Usage) int64 { return u.Files }, Factor: 1.1, Plus: 8},
	{Name: "threads", Of: func(u crashtest.Usage) int64 { return u.Threads }, Factor: 1.2, Plus: 4},
	{Name: "goroutines", Of: func(u crashtest.Usage) int64 { return u.Goroutines }, Factor: 1.1, Plus: soakers},
	{Name: "journal, snapshots and blobs", Of: func(u crashtest.Usage) int64 { return u.Journal }, Factor: 1.5, Plus: 64 << 20},
}

// TestSoak measures what the host can do, keeps it at a share of that for long and
// looks for what grows.
func TestSoak(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "site")
	module, err := os.ReadFile("../../host/testdata/guests/c/small.wasm")
	if err == nil {
		err = os.Mkdir(dir, 0o700)
	}
	if err != nil {
		t.Fatal(err)
	}
	for name, content := range map[string]string{"small.wasm": string(module), "small.hcl": soakFlow[1:]} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	h, err := crashtest.NewHost(built.program, &crashtest.Site{Dir: dir}, filepath.Join(t.TempDir(), "data"))
	if err != nil {
		t.Fatal(err)
	}
	p, err := h.Start()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Kill)
	if err := h.Serves(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	nc, err := h.Operator(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()

	rate := capacity(t, nc) * *load
	t.Logf("soaking at %.0f runs/s", rate)
	samples := soak(t, h, p, nc, rate)
	for _, text := range crashtest.Grown(samples, bounds) {
		t.Error(text)
	}
	if err := p.Stop(t.Context()); err != nil {
		t.Error(err)
	}
}

// capacity is how many runs come to their end in a second when always some wait.
func capacity(t *testing.T, nc *nats.Conn) float64 {
	t.Helper()
	f := &crashtest.Flood{Flow: "small", Workers: 128}
	flood(t, f, nc, 3*time.Second) // modules are compiled, memory is had
	before, _ := f.Done()
	const measured = 15 * time.Second
	flood(t, f, nc, measured)
	after, _ := f.Done()
	rate := float64(after-before) / measured.Seconds()
	t.Logf("capacity: %.0f runs/s", rate)
	return rate
}

func flood(t *testing.T, f *crashtest.Flood, nc *nats.Conn, d time.Duration) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), d)
	defer cancel()
	if err := f.Run(ctx, nc); err != nil {
		t.Error(err)
	}
}

// soak gives what the process has used, looked at a hundred times at least.
func soak(t *testing.T, h *crashtest.Host, p *crashtest.Process, nc *nats.Conn, rate float64) []crashtest.Usage {
	t.Helper()
	length := time.Duration(*minutes * float64(time.Minute))
	f := &crashtest.Flood{Flow: "small", Workers: soakers, Rate: rate}
	done := make(chan struct{})
	go func() {
		defer close(done)
		flood(t, f, nc, length)
	}()
	tick := time.NewTicker(min(10*time.Second, length/100))
	defer tick.Stop()
	var samples []crashtest.Usage
	began := time.Now()
	t.Logf("%8s %10s %8s %10s %8s %8s %8s %8s %11s %9s", "at", "runs", "failed", "p50/p99", "RSS MB", "files", "threads", "gorout.", "journal MB", "disk MB")
	for {
		select {
		case <-tick.C:
		case <-done:
			return samples
		}
		u, err := crashtest.Use(t.Context(), h, p, nc)
		if err != nil {
			t.Error(err)
			continue
		}
		u.At = time.Since(began)
		samples = append(samples, u)
		runs, failed := f.Done()
		p50, p99 := f.Take()
		t.Logf("%8s %10d %8d %5.1f/%4.0f %8d %8d %8d %8d %11d %9d", u.At.Round(time.Second), runs, failed,
			ms(p50), ms(p99), u.Resident>>20, u.Files, u.Threads, u.Goroutines, u.Journal>>20, u.Disk>>20)
	}
}

func ms(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
