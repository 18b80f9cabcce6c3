//go:build unix

package compile

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// private reports why others than this user may use a directory.
func private(info fs.FileInfo) error {
	if stat, ok := info.Sys().(*syscall.Stat_t); ok && int(stat.Uid) != os.Geteuid() {
		return fmt.Errorf("belongs to user %d, and this process runs as user %d", stat.Uid, os.Geteuid())
	}
	if mode := info.Mode().Perm(); mode&0o077 != 0 {
		return fmt.Errorf("has the permissions %#o, which let others in", mode)
	}
	return nil
}

// openToAll reports a directory of a path in which everybody may rename what lies
// in it, so that another user could put a directory in the place of ours.
func openToAll(dir string) error {
	for ; ; dir = filepath.Dir(dir) {
		info, err := os.Stat(dir)
		if err != nil {
			return err
		}
		if info.Mode().Perm()&0o002 != 0 && info.Mode()&fs.ModeSticky == 0 {
			return fmt.Errorf("everybody may write to %s: set a cache elsewhere, or chmod o-w %[1]s", dir)
		}
		if dir == filepath.Dir(dir) {
			return nil
		}
	}
}

// sameDevice reports whether nothing is mounted on an entry of a directory.
func sameDevice(root *os.Root, entry fs.DirEntry) bool {
	of, err := root.Stat(".")
	info, infoErr := entry.Info()
	if errors.Join(err, infoErr) != nil {
		return false
	}
	a, ok := of.Sys().(*syscall.Stat_t)
	b, okToo := info.Sys().(*syscall.Stat_t)
	return ok && okToo && a.Dev == b.Dev
}
