//go:build amd64 || arm64 || loong64 || mips64 || mips64le || ppc64 || ppc64le || riscv64 || s390x

package scheduler

import (
	"context"
	"os"
	"sync/atomic"
	"syscall"
	"time"
	"unsafe"
)

// Of <linux/time.h> and <linux/timerfd.h>; package syscall does not have them.
const (
	clockRealtime  = 0
	timerAbsolute  = 1 << 0
	timerCancelSet = 1 << 1
)

// sameClock is how far the system's clock may be from the one that time.Now
// reads for both to be the same.
const sameClock = time.Minute

// fileWaker sleeps by a timer of the kernel, read through the runtime's network
// poller, and by a timer of the runtime, the read deadline: whichever comes
// first. The kernel's is exact, where the runtime rounds what it waits for to
// milliseconds (golang/go#53824), and ends a sleep when the clock is set. The
// runtime's comes first when all processors are busy, because the poller is
// looked at less often then.
type fileWaker struct {
	wallReader
	file  *os.File
	conn  syscall.RawConn
	poll  func(fd uintptr) bool // the method pollFile
	ended func()                // no longer waits for the context

	woken atomic.Bool
	until int64
	armed bool // the kernel's timer, in the sleep under way
}

// newWallWaker falls back on the runtime alone where the system refuses a timer,
// and where time.Now is not the system's clock: in a bubble of testing/synctest.
func newWallWaker(ctx context.Context) waker {
	if w := newFileWaker(ctx); w != nil {
		return w
	}
	return newTimerWaker(ctx)
}

func newFileWaker(ctx context.Context) *fileWaker {
	var system syscall.Timeval
	if syscall.Gettimeofday(&system) != nil || time.Since(time.Unix(system.Unix())).Abs() > sameClock {
		return nil
	}
	fd, _, errno := syscall.Syscall(syscall.SYS_TIMERFD_CREATE, clockRealtime, syscall.O_NONBLOCK|syscall.O_CLOEXEC, 0)
	if errno != 0 {
		return nil
	}
	w := &fileWaker{wallReader: wallReader{time.Now()}, file: os.NewFile(fd, "timerfd")}
	conn, err := w.file.SyscallConn()
	if err != nil || w.file.SetReadDeadline(time.Time{}) != nil { // the poller does not take it
		w.file.Close()
		return nil
	}
	w.conn, w.poll = conn, w.pollFile
	w.endWith(ctx)
	return w
}

// endWith lets the end of the context wake the sleeper, on a goroutine that
// close waits for.
func (w *fileWaker) endWith(ctx context.Context) {
	woke := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		defer close(woke)
		w.wake()
	})
	w.ended = func() {
		if !stop() {
			<-woke
		}
	}
}

// sleep has no errors to report: whatever goes wrong with the kernel's timer, the
// deadline is there too.
func (w *fileWaker) sleep(until int64) {
	w.until, w.armed = until, false
	w.file.SetReadDeadline(deadline(until))
	w.conn.Read(w.poll)
	w.woken.Store(false) // whoever wakes from here on has added before the owner looks
}

func deadline(until int64) time.Time {
	if until == never {
		return time.Time{}
	}
	return time.Unix(0, until)
}

// pollFile is called before the wait and when the file is ready. The file is never
// read: setting the timer makes it unready, and the poller reports changes only.
// Arming within the call loses nothing, because the poller has begun to listen.
func (w *fileWaker) pollFile(fd uintptr) bool {
	if w.armed || w.woken.Load() {
		return true
	}
	w.armed = true
	return setTimer(fd, w.until) == syscall.ECANCELED // the clock was set before this call
}

func setTimer(fd uintptr, until int64) syscall.Errno {
	var spec struct{ interval, value syscall.Timespec }
	if until != never {
		spec.value = syscall.NsecToTimespec(until)
	}
	_, _, errno := syscall.Syscall6(syscall.SYS_TIMERFD_SETTIME, fd, timerAbsolute|timerCancelSet,
		uintptr(unsafe.Pointer(&spec)), 0, 0, 0)
	return errno
}

func (w *fileWaker) wake() {
	w.woken.Store(true)
	w.file.SetReadDeadline(time.Unix(1, 0))
}

func (w *fileWaker) close() {
	w.ended()
	w.file.Close()
}
