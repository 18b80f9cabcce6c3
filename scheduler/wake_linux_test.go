//go:build amd64 || arm64 || loong64 || mips64 || mips64le || ppc64 || ppc64le || riscv64 || s390x

package scheduler

import (
	"context"
	"testing"
	"testing/synctest"
	"time"
)

func TestWallWakerIsTheKernels(t *testing.T) {
	t.Parallel()
	w := newWallWaker(t.Context())
	defer w.close()
	if _, ok := w.(*fileWaker); !ok {
		t.Errorf("the wall clock wakes by %T", w)
	}
}

// The kernel knows nothing of a bubble's time.
func TestWallWakerInBubble(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWallWaker(t.Context())
		defer w.close()
		if _, ok := w.(*timerWaker); !ok {
			t.Errorf("the bubble's clock wakes by %T", w)
		}
	})
}

// Each of the two timers ends a sleep when the other does not.
func TestEitherTimerWakes(t *testing.T) {
	t.Parallel()
	soon := func() int64 { return time.Now().Add(time.Millisecond).UnixNano() }
	w := newFileWaker(t.Context())
	if w == nil {
		t.Fatal("no timer of the kernel")
	}
	defer w.close()

	w.file.SetReadDeadline(time.Time{})
	w.until, w.armed = soon(), false
	if err := w.conn.Read(w.poll); err != nil || time.Now().UnixNano() < w.until {
		t.Errorf("the kernel's timer: %v", err)
	}

	w.file.SetReadDeadline(deadline(soon()))
	w.until, w.armed = never, false
	if err := w.conn.Read(w.poll); err == nil {
		t.Error("the runtime's timer ended no sleep")
	}
}

func TestFileWakerAfterClose(t *testing.T) {
	t.Parallel()
	ctx, stop := context.WithCancel(t.Context())
	w := newFileWaker(ctx)
	stop()
	w.close()
	w.wake()
	w.sleep(never)
}
