package guestfs

import (
	"errors"
	"io"
	"io/fs"
	"syscall"

	"github.com/tetratelabs/wazero/experimental/sys"
)

// Substitutes for errors for which wazero has no number.
const (
	errLimit   = sys.EIO     // EMFILE, ENOSPC, EFBIG
	errStopped = sys.EIO     // the call is over, and about to be ended
	errCross   = sys.ENOTSUP // EXDEV
	errKind    = sys.EACCES  // a pipe, a socket or a device
)

// errnoOf is the number of an error of package os. What is neither the system's
// nor one of fs is a refusal of [os.Root]: the path leads out.
func errnoOf(err error) sys.Errno {
	var errno syscall.Errno
	switch {
	case err == nil, errors.Is(err, io.EOF):
		return 0
	case errors.As(err, &errno):
		if errno == syscall.EXDEV {
			return errCross
		}
		return sys.UnwrapOSError(errno)
	case errors.Is(err, fs.ErrClosed):
		return sys.EBADF
	case errors.Is(err, fs.ErrNotExist):
		return sys.ENOENT
	case errors.Is(err, fs.ErrExist):
		return sys.EEXIST
	}
	return sys.EPERM
}
