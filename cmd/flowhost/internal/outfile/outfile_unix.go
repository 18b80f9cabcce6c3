//go:build unix

package outfile

import (
	"io/fs"
	"os"
	"syscall"
)

// openNow lets opening a pipe without a reader fail instead of block.
const openNow = syscall.O_NONBLOCK

func keepOwner(file *os.File, before fs.FileInfo) error {
	old, ok := before.Sys().(*syscall.Stat_t)
	info, err := file.Stat()
	if err != nil || !ok {
		return err
	}
	if now, ok := info.Sys().(*syscall.Stat_t); ok && (now.Uid != old.Uid || now.Gid != old.Gid) {
		return file.Chown(int(old.Uid), int(old.Gid))
	}
	return nil
}
