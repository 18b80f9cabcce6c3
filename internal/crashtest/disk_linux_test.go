//go:build powerloss || faults

package crashtest_test

import (
	"context"
	"path/filepath"
	"testing"
	"time"

	"github.com/flowhost/flowhost/internal/crashtest"
)

// grid is a host whose streams are on a disk of their own.
type grid struct {
	*crashtest.Host
	disk *crashtest.Disk
}

// onDisk is a host with its own NATS server on a disk of so many bytes.
func onDisk(t *testing.T, size int64, args ...string) grid {
	t.Helper()
	d := newDisk(t, size)
	h, err := crashtest.NewHost(built.program, newSite(t, busy), filepath.Join(d.Dir, "data"), args...)
	if err != nil {
		t.Fatal(err)
	}
	return grid{h, d}
}

func newDisk(t *testing.T, size int64) *crashtest.Disk {
	t.Helper()
	d, err := crashtest.NewDisk(t.Context(), t.TempDir(), size)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		if err := d.Unmount(ctx); err != nil {
			t.Error(err)
		}
	})
	return d
}
