package host

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/flowhost/flowhost/run"
)

// privateDirs is directories of the host's own. An empty path is none.
type privateDirs []string

// check refuses grants that reach a private directory: the directory itself, one
// within it, or one around it. Links are followed at each call, because both may
// have moved since the last one; and directories are compared by what they are, not
// by their names alone, because a file system may have several for one.
func (p privateDirs) check(grants []run.FileGrant) error {
	for _, g := range grants {
		granted := filepath.Join(g.Folder, filepath.FromSlash(g.Path))
		for _, own := range p {
			if own == "" {
				continue
			}
			reached, err := reach(granted, own)
			if err != nil {
				return fmt.Errorf("the directory %s that is granted as %s cannot be compared with those of the host: %w", granted, g.Guest, err)
			}
			if reached {
				return fmt.Errorf("the directory %s cannot be granted as %s: it holds, or lies in, %s, where the host keeps its own data; grant another one, or move the host's", granted, g.Guest, own)
			}
		}
	}
	return nil
}

// reach reports whether one of two directories is the other one or lies in it.
func reach(a, b string) (bool, error) {
	a, err := resolved(a)
	if err != nil {
		return false, err
	}
	if b, err = resolved(b); err != nil {
		return false, err
	}
	return lies(a, b) || lies(b, a), nil
}

// lies reports whether a path is another one or below it.
func lies(path, parent string) bool {
	if rest, ok := strings.CutPrefix(path, strings.TrimSuffix(parent, string(filepath.Separator))); ok && (rest == "" || os.IsPathSeparator(rest[0])) {
		return true
	}
	around, err := os.Stat(parent)
	if err != nil {
		return false
	}
	for {
		if info, err := os.Stat(path); err == nil && os.SameFile(info, around) {
			return true
		}
		up := filepath.Dir(path)
		if up == path {
			return false
		}
		path = up
	}
}

// resolved is the absolute path without links. What is not there yet is below the
// last directory that is.
func resolved(path string) (string, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return "", err
	}
	missing := ""
	for {
		real, err := filepath.EvalSymlinks(path)
		if err == nil {
			return filepath.Join(real, missing), nil
		}
		up := filepath.Dir(path)
		if !errors.Is(err, fs.ErrNotExist) || up == path {
			return "", err
		}
		missing, path = filepath.Join(filepath.Base(path), missing), up
	}
}
