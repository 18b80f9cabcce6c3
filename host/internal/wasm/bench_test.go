package wasm

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
)

// goGuest builds the guest of testdata that encodes and decodes JSON.
func goGuest(t testing.TB) []byte {
	t.Helper()
	path := filepath.Join(t.TempDir(), "json.wasm")
	cmd := exec.Command("go", "build", "-trimpath", "-ldflags=-s -w", "-buildmode=c-shared", "-o", path, "./testdata/guests/json")
	cmd.Env = append(os.Environ(), "GOOS=wasip1", "GOARCH=wasm", "GOFLAGS=")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	binary, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return binary
}

// tight is a module with a loop of one load, one xor and one addition.
func tight() []byte {
	return program(
		function("\x01\x7f", "\x01\x7f", "\x01\x02\x7f",
			"\x03\x40\x20\x01\x20\x02\x41\xff\xff\x03\x71\x28\x02\x00\x73\x41\x07\x6a\x21\x01"+
				"\x20\x02\x41\x04\x6a\x21\x02\x20\x00\x41\x01\x6b\x22\x00\x0d\x00\x0b\x20\x01"))
}

// fibonacci is a module with the function that everybody writes recursively.
func fibonacci() []byte {
	return program(
		function("\x01\x7f", "\x01\x7f", "\x00",
			"\x20\x00\x41\x02\x49\x04\x7f\x20\x00\x05\x20\x00\x41\x01\x6b\x10\x00\x20\x00\x41\x02\x6b\x10\x00\x6a\x0b"))
}

// BenchmarkRewrite gives the speed in bytes of the module.
func BenchmarkRewrite(b *testing.B) {
	binary := goGuest(b)
	m, err := Decode(binary, Options{})
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	b.SetBytes(int64(len(binary)))
	for b.Loop() {
		m.Rewrite(RewriteOptions{})
	}
}

// BenchmarkInterruptible reports how many times as long rewritten guests take.
// Plain and rewritten calls take turns, so that both have the same machine.
func BenchmarkInterruptible(b *testing.B) {
	for _, bb := range []struct {
		name   string
		binary func() []byte
		export string
		args   []uint64
	}{
		{"loop", tight, "0", []uint64{2_000_000}},
		{"fib", fibonacci, "0", []uint64{25}},
		{"json-small", func() []byte { return goGuest(b) }, "small", nil},
		{"json-large", func() []byte { return goGuest(b) }, "large", nil},
	} {
		b.Run(bb.name, func(b *testing.B) {
			s := newSandbox(b, wazero.NewRuntimeConfigCompiler())
			binary := bb.binary()
			plain := timed(b, s.instance(b, binary).ExportedFunction(bb.export), bb.args)
			guest, err := s.begin(b.Context(), rewrite(b, binary))
			if err != nil {
				b.Fatal(err)
			}
			rewritten := timed(b, guest.ExportedFunction(bb.export), bb.args)
			var before, after []time.Duration
			for b.Loop() {
				before = append(before, plain())
				after = append(after, rewritten())
			}
			b.ReportMetric(float64(slices.Min(before)), "plain-ns")
			b.ReportMetric(float64(slices.Min(after)), "rewritten-ns")
			b.ReportMetric(float64(slices.Min(after))/float64(slices.Min(before)), "ratio")
			b.ReportMetric(float64(s.interrupts[InterruptUnits])/float64(len(after)), "interrupts")
		})
	}
}

// timed is a function that times a call.
func timed(t testing.TB, f api.Function, args []uint64) func() time.Duration {
	return func() time.Duration {
		start := time.Now()
		if _, err := f.Call(context.Background(), args...); err != nil {
			t.Fatal(err)
		}
		return time.Since(start)
	}
}
