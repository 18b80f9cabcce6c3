package natsd

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"syscall"

	"github.com/flowhost/flowhost/bus/internal/jskit"
)

// CheckDataDir refuses a directory that [ClaimDataDir] would refuse. It changes
// nothing.
func CheckDataDir(dir string) error {
	_, err := lookAtDataDir(dir)
	return err
}

// ClaimDataDir makes a directory for the data of a host, and marks it as one. A
// directory that is there must have the mark, or be empty: it may be somebody
// else's otherwise. Nothing of a directory that was there is changed, its
// permissions neither: one that other users could read is refused.
//
// Several processes may claim a directory at the same time; what keeps them apart
// is the lock of [Start]. A *FormatError reports that another version of the
// program wrote the directory.
func ClaimDataDir(dir, version string, log *slog.Logger) error {
	marked, err := lookAtDataDir(dir)
	if err != nil || marked {
		return err
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return dataDirError(err)
	}
	if err := writeFormat(filepath.Join(dir, formatFile), version); err != nil {
		return err
	}
	jskit.Logger(log).Info("new data directory", "dir", dir)
	return nil
}

func dataDirError(err error) error { return fmt.Errorf("data directory: %w", err) }

// lookAtDataDir reports whether a directory has the mark. One that is missing or
// empty has not, and is none to be refused.
func lookAtDataDir(dir string) (marked bool, err error) {
	dir, err = filepath.Abs(dir)
	if err != nil {
		return false, dataDirError(err)
	}
	info, err := os.Stat(dir)
	if errors.Is(err, fs.ErrNotExist) {
		if now, err := os.Lstat(dir); err == nil && now.Mode()&fs.ModeSymlink == 0 {
			return lookAtDataDir(dir) // somebody has just made it
		}
		return false, checkParent(dir)
	}
	if errors.Is(err, syscall.ENOTDIR) {
		return false, fmt.Errorf("data directory: %s is below a file: name one that is empty or not there yet", dir)
	}
	if err != nil {
		return false, dataDirError(err)
	}
	if !info.IsDir() {
		return false, fmt.Errorf("data directory: %s is not a directory: name one that is empty or not there yet", dir)
	}
	// The entries are read before the mark: whoever makes others has made it first.
	entries, err := os.ReadDir(dir)
	if err != nil {
		return false, dataDirError(err)
	}
	err = checkFormat(dir)
	if marked = err == nil; errors.Is(err, fs.ErrNotExist) {
		err = checkEmpty(dir, entries)
	}
	if err == nil {
		err = writableDir(dir)
	}
	if err == nil {
		err = othersOut(dir)
	}
	return marked, err
}

// checkParent reports why a directory that is missing cannot be made.
func checkParent(dir string) error {
	if now, err := os.Lstat(dir); err == nil && now.Mode()&fs.ModeSymlink != 0 {
		return fmt.Errorf("data directory: %s is a symbolic link to something that is missing: make its target, or name another directory", dir)
	}
	for parent := filepath.Dir(dir); ; parent = filepath.Dir(parent) {
		_, err := os.Stat(parent)
		if err == nil {
			return writableDir(parent)
		}
		if !errors.Is(err, fs.ErrNotExist) || parent == filepath.Dir(parent) {
			return dataDirError(err)
		}
	}
}

// unmarked is the name of a file of ours that may lie in a directory before the
// mark: the mark itself, while it is written.
var unmarked = regexp.MustCompile(`^\.new-[0-9]+$`)

// checkEmpty refuses a directory with entries. The root of a file system has
// lost+found.
func checkEmpty(dir string, entries []fs.DirEntry) error {
	for _, e := range entries {
		if e.Name() == "lost+found" && e.IsDir() || unmarked.MatchString(e.Name()) && e.Type().IsRegular() {
			continue
		}
		return fmt.Errorf("data directory: %s is not empty (it has %q) and was not made by flowhost, which changes nothing in it: name a directory that is empty or not there yet, such as %s",
			dir, e.Name(), filepath.Join(dir, "flowhost"))
	}
	return nil
}
