package guestfs

import (
	"io"
	"math"
	"os"

	"github.com/tetratelabs/wazero/experimental/sys"
	stat "github.com/tetratelabs/wazero/sys"
)

// maxRead is what one operation reads at most. A guest may ask for many pieces
// in one call of the host, and the context is looked at between them.
const maxRead = 1 << 20

// regular is an open regular file.
type regular struct {
	sys.UnimplementedFile
	fs     *FS
	path   string
	file   *os.File // nil once closed
	access access
}

// check is asked before every operation.
func (r *regular) check(allowed bool) sys.Errno {
	switch {
	case r.file == nil || !allowed:
		return sys.EBADF
	case r.fs.stopped():
		return errStopped
	}
	return 0
}

// Dev is the same for all files.
func (r *regular) Dev() (uint64, sys.Errno) { return device, 0 }

// Ino follows from the path under which the file was opened.
func (r *regular) Ino() (stat.Inode, sys.Errno) { return inode(r.path), 0 }

// IsAppend reports how the file was opened.
func (r *regular) IsAppend() bool { return r.access.flag&os.O_APPEND != 0 }

// SetAppend cannot change how the file was opened.
func (r *regular) SetAppend(enable bool) sys.Errno {
	if enable != r.IsAppend() {
		return sys.ENOTSUP
	}
	return 0
}

// Stat describes the file.
func (r *regular) Stat() (stat.Stat_t, sys.Errno) {
	if r.file == nil {
		return stat.Stat_t{}, sys.EBADF
	}
	info, err := r.file.Stat()
	if err != nil {
		return stat.Stat_t{}, errnoOf(err)
	}
	return statOf(r.path, info), 0
}

// Read reads at the file's position, 1 MiB at most.
func (r *regular) Read(buf []byte) (int, sys.Errno) {
	if errno := r.check(r.access.read); errno != 0 {
		return 0, errno
	}
	n, err := r.file.Read(buf[:min(len(buf), maxRead)])
	return n, errnoOf(err)
}

// Pread reads at an offset, 1 MiB at most.
func (r *regular) Pread(buf []byte, offset int64) (int, sys.Errno) {
	if errno := r.check(r.access.read); errno != 0 {
		return 0, errno
	}
	if offset < 0 {
		return 0, sys.EINVAL
	}
	n, err := r.file.ReadAt(buf[:min(len(buf), maxRead)], offset)
	return n, errnoOf(err)
}

// Seek sets the file's position.
func (r *regular) Seek(offset position, whence int) (int64, sys.Errno) {
	if errno := r.check(true); errno != 0 {
		return 0, errno
	}
	if whence < io.SeekStart || whence > io.SeekEnd {
		return 0, sys.EINVAL
	}
	at, err := r.file.Seek(offset, whence)
	return at, errnoOf(err)
}

// Write writes all of buf or, over the limit, nothing: wazero does not look at
// how much was written.
func (r *regular) Write(buf []byte) (int, sys.Errno) {
	if errno := r.check(r.access.write); errno != 0 {
		return 0, errno
	}
	whence := io.SeekCurrent
	if r.IsAppend() {
		whence = io.SeekEnd
	}
	at, err := r.file.Seek(0, whence)
	if err != nil {
		return 0, errnoOf(err)
	}
	if errno := r.makeRoom(at, int64(len(buf))); errno != 0 {
		return 0, errno
	}
	n, err := r.file.Write(buf)
	return n, errnoOf(err)
}

// Pwrite writes at an offset, as Write does. A file opened for appending has
// none.
func (r *regular) Pwrite(buf []byte, offset int64) (int, sys.Errno) {
	if errno := r.check(r.access.write); errno != 0 {
		return 0, errno
	}
	if offset < 0 {
		return 0, sys.EINVAL
	}
	if r.IsAppend() {
		return 0, sys.ENOTSUP
	}
	if errno := r.makeRoom(offset, int64(len(buf))); errno != 0 {
		return 0, errno
	}
	n, err := r.file.WriteAt(buf, offset)
	return n, errnoOf(err)
}

// makeRoom takes the bytes that are written at an offset from what the call may
// write, with what lies between them and the file's end.
func (r *regular) makeRoom(offset, bytes int64) sys.Errno {
	if bytes == 0 {
		return 0
	}
	if offset > math.MaxInt64-bytes {
		return sys.EINVAL
	}
	info, err := r.file.Stat()
	if err != nil {
		return errnoOf(err)
	}
	return r.fs.charge(max(bytes, offset+bytes-info.Size()))
}

// Truncate sets the file's size. What it grows by counts as written: it can be
// read, and is filled later.
func (r *regular) Truncate(size int64) sys.Errno {
	if errno := r.check(r.access.write); errno != 0 {
		return errno
	}
	if size < 0 {
		return sys.EINVAL
	}
	info, err := r.file.Stat()
	if err != nil {
		return errnoOf(err)
	}
	if errno := r.fs.charge(max(0, size-info.Size())); errno != 0 {
		return errno
	}
	return errnoOf(r.file.Truncate(size))
}

// Sync waits until the file is on disk.
func (r *regular) Sync() sys.Errno {
	if errno := r.check(true); errno != 0 {
		return errno
	}
	return errnoOf(r.file.Sync())
}

// Datasync is Sync.
func (r *regular) Datasync() sys.Errno { return r.Sync() }

// Utimens sets the times of what is now at the file's path: package os has no
// way to set those of an open file.
func (r *regular) Utimens(atim, mtim int64) sys.Errno {
	if errno := r.check(true); errno != 0 {
		return errno
	}
	return r.fs.Utimens(r.path, atim, mtim)
}

// Close closes the file.
func (r *regular) Close() sys.Errno { return r.fs.close(r) }

func (r *regular) ofHost() bool { return true }

func (r *regular) release() error {
	if r.file == nil {
		return nil
	}
	file := r.file
	r.file = nil
	return file.Close()
}
