//go:build linux || darwin || freebsd

package natsd

import (
	"syscall"
)

// FreeSpace is how many bytes a file system has left for its ordinary users.
func FreeSpace(dir string) (int64, error) {
	var s syscall.Statfs_t
	if err := syscall.Statfs(dir, &s); err != nil {
		return 0, err
	}
	return int64(s.Bavail) * int64(s.Bsize), nil
}
