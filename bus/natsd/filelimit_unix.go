//go:build unix

package natsd

import (
	"syscall"
)

// maxFiles is how many files and connections the process may have open.
func maxFiles() int {
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		return filesShare * maxConnections
	}
	return int(min(limit.Cur, filesShare*maxConnections))
}
