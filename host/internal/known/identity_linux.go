package known

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"syscall"
	"time"
)

// identify returns what changes with each change of a file: its inode's number, its size,
// and the times of its content and of its inode. No program can set the last one, and
// each write does. ok is false where that is not known; no file is known, too.
func identify(path string) (identity string, changed time.Time, ok bool) {
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return "none", time.Time{}, true
	}
	if err != nil || !info.Mode().IsRegular() {
		return "", time.Time{}, false
	}
	// A file system on a network asks its server when a file is opened, and not for stat.
	file, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return "", time.Time{}, false
	}
	defer file.Close()
	if info, err = file.Stat(); err != nil {
		return "", time.Time{}, false
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return "", time.Time{}, false
	}
	changed = time.Unix(stat.Ctim.Unix())
	return fmt.Sprint(stat.Dev, stat.Ino, stat.Size, stat.Mtim, stat.Ctim), changed, true
}
