//go:build unix

package natsd

import (
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// writableDir reports why files cannot be made in a directory.
func writableDir(dir string) error {
	info, err := os.Stat(dir)
	if err != nil {
		return dataDirError(err)
	}
	if !info.IsDir() {
		return fmt.Errorf("data directory: %s is not a directory", dir)
	}
	if err := unix.Access(dir, unix.W_OK|unix.X_OK); err != nil {
		return fmt.Errorf("data directory: this process cannot write to %s: %w", dir, err)
	}
	return nil
}

// Permissions to use a directory, and to pass through one.
const (
	useByOthers  = 0o007
	useByGroup   = 0o070
	passOfOthers = 0o001
	passOfAny    = 0o011
)

// othersOut refuses a directory that any user of the machine can reach and use.
func othersOut(dir string) error {
	open, mode, err := reachable(dir, useByOthers, passOfOthers)
	if err != nil || !open {
		return err
	}
	return fmt.Errorf("data directory: other users can get into %s (permissions %#o), and the journal and the credentials would lie in it: chmod 700 it, or name a directory in it that is not there yet, such as %s, which is made for this user alone",
		dir, mode, filepath.Join(dir, "flowhost"))
}

// reachable reports whether a directory has one of some permissions, and those
// above it let somebody come there: one below a private directory is private, too.
func reachable(dir string, use, pass fs.FileMode) (bool, fs.FileMode, error) {
	path, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return false, 0, dataDirError(err)
	}
	info, err := os.Stat(path)
	if err != nil {
		return false, 0, dataDirError(err)
	}
	mode := info.Mode().Perm()
	if mode&use == 0 {
		return false, mode, nil
	}
	for path != filepath.Dir(path) {
		path = filepath.Dir(path)
		if info, err = os.Stat(path); err != nil {
			return false, 0, dataDirError(err)
		}
		if info.Mode().Perm()&pass == 0 {
			return false, mode, nil
		}
	}
	return true, mode, nil
}

// reportSharing logs who may use a data directory beside this process. That is how
// volumes of containers are made, so it is no error.
func reportSharing(dir string, log *slog.Logger) {
	var stat unix.Stat_t
	if unix.Stat(dir, &stat) != nil {
		return
	}
	if open, _, err := reachable(dir, useByGroup, passOfAny); err == nil && open {
		log.Warn("the members of a group can get into the data directory: chmod 700 it unless the group is the host's own", "dir", dir, "group", stat.Gid)
	}
	if owner := int(stat.Uid); owner != os.Geteuid() && owner != 0 {
		log.Warn("the data directory belongs to another user, who can read and change what is in it", "dir", dir, "user", owner)
	}
}
