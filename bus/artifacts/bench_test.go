package artifacts_test

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/flowhost/flowhost/bus/artifacts"
	"github.com/flowhost/flowhost/bus/internal/bustest"
)

// BenchmarkPassThrough writes and reads an artifact of 1 GiB, and reports the growth of live
// memory. The server of the objects is in the same process.
func BenchmarkPassThrough(b *testing.B) {
	const size = 1 << 30
	for name, make := range sites {
		b.Run(name, func(b *testing.B) {
			store := make(b).open(b, 3<<30)
			b.SetBytes(size)
			for b.Loop() {
				b.ReportMetric(float64(passThrough(b, store, size))/(1<<20), "MiB-live")
			}
		})
	}
}

// BenchmarkNative writes and reads 24 MiB by an object store of nats.go, and by a file. The
// store sends all parts at once, and the server refuses more than 32 MiB that wait.
func BenchmarkNative(b *testing.B) {
	data := noise(1, 24<<20)
	b.Run("objects", func(b *testing.B) {
		nc := connect(b)
		openObjects(b, nc, 0)
		bucket, err := bustest.JetStream(b, nc).ObjectStore(b.Context(), artifacts.Bucket)
		if err != nil {
			b.Fatal(err)
		}
		b.SetBytes(int64(len(data)))
		for b.Loop() {
			if _, err := bucket.PutBytes(b.Context(), "native", data); err != nil {
				b.Fatal(err)
			}
			got, err := bucket.Get(b.Context(), "native")
			if err != nil {
				b.Fatal(err)
			}
			if _, err := io.Copy(io.Discard, got); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("files", func(b *testing.B) {
		name := filepath.Join(b.TempDir(), "native")
		b.SetBytes(int64(len(data)))
		for b.Loop() {
			file, err := os.Create(name)
			if err != nil {
				b.Fatal(err)
			}
			if _, err := io.Copy(file, bytes.NewReader(data)); err != nil {
				b.Fatal(err)
			}
			if err := file.Sync(); err != nil {
				b.Fatal(err)
			}
			if _, err := file.Seek(0, io.SeekStart); err != nil {
				b.Fatal(err)
			}
			if _, err := io.Copy(io.Discard, file); err != nil {
				b.Fatal(err)
			}
			if err := file.Close(); err != nil {
				b.Fatal(err)
			}
		}
	})
}

// BenchmarkStore passes 24 MiB through a store, to be compared with BenchmarkNative.
func BenchmarkStore(b *testing.B) {
	const size = 24 << 20
	for name, make := range sites {
		b.Run(name, func(b *testing.B) {
			store := make(b).open(b, 0)
			b.SetBytes(size)
			for b.Loop() {
				passThrough(b, store, size)
			}
		})
	}
}
