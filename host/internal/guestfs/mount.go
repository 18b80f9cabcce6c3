package guestfs

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/flowhost/flowhost/run"
)

// maxMounts bounds the grants of a call: each keeps a directory open.
const maxMounts = 64

var errLink = errors.New("the path contains a link: grant the directory itself")

// mount is a granted directory, open.
type mount struct {
	guest string // where the guest sees it: absolute, clean, not "/"
	write bool
	root  *os.Root
}

func openMounts(grants []run.FileGrant) ([]mount, error) {
	if len(grants) > maxMounts {
		return nil, fmt.Errorf("%d directories are granted, and the maximum is %d", len(grants), maxMounts)
	}
	mounts := make([]mount, 0, len(grants))
	for _, g := range grants {
		err := checkGrant(g, mounts)
		var root *os.Root
		if err == nil {
			root, err = openGrant(g)
		}
		if err != nil {
			closeMounts(mounts)
			return nil, fmt.Errorf("the directory %s that is granted as %s cannot be used: %w", filepath.Join(g.Folder, filepath.FromSlash(g.Path)), g.Guest, err)
		}
		mounts = append(mounts, mount{guest: g.Guest, write: g.Write, root: root})
	}
	return mounts, nil
}

func closeMounts(mounts []mount) {
	for _, m := range mounts {
		_ = m.root.Close() // it was only read
	}
}

// checkGrant refuses what the rest of the package does not expect. A directory
// within another would be reached in two ways, with two sets of rights.
func checkGrant(g run.FileGrant, others []mount) error {
	switch {
	case !path.IsAbs(g.Guest) || path.Clean(g.Guest) != g.Guest || g.Guest == "/" || len(g.Guest) > maxPath:
		return fmt.Errorf("%q is no place for it: an absolute path other than / is required", g.Guest)
	case !filepath.IsAbs(g.Folder):
		return fmt.Errorf("%q is not an absolute path", g.Folder)
	case !filepath.IsLocal(filepath.FromSlash(g.Path)):
		return fmt.Errorf("%q leads out of %s", g.Path, g.Folder)
	}
	for _, m := range others {
		if within(g.Guest, m.guest) || within(m.guest, g.Guest) {
			return fmt.Errorf("it overlaps with %s", m.guest)
		}
	}
	return nil
}

// openGrant opens a directory without following links: a guest that may write where
// it lies could otherwise lead the next call elsewhere, by moving links that
// others made.
func openGrant(g run.FileGrant) (*os.Root, error) {
	root, err := os.OpenRoot(g.Folder)
	if err != nil {
		return nil, cause(err)
	}
	for name := range strings.SplitSeq(path.Clean(g.Path), "/") {
		next, err := step(root, name, g.Write)
		_ = root.Close() // it was only read
		if err != nil {
			return nil, cause(err)
		}
		root = next
	}
	return root, nil
}

// step opens a directory in another one, and makes it where that is allowed. If
// the name is another file's afterwards, a link was followed or somebody was
// quicker.
func step(parent *os.Root, name string, create bool) (*os.Root, error) {
	if create {
		if err := parent.Mkdir(name, 0o777); err != nil && !errors.Is(err, fs.ErrExist) {
			return nil, err
		}
	}
	// The dot has the system insist on a directory: opening a pipe would wait.
	root, err := parent.OpenRoot(name + "/.")
	if err != nil {
		return nil, err
	}
	opened, err := root.Stat(".")
	if err == nil {
		var named fs.FileInfo
		if named, err = parent.Lstat(name); err == nil && !os.SameFile(opened, named) {
			err = errLink
		}
	}
	if err != nil {
		_ = root.Close() // it was only read
		return nil, err
	}
	return root, nil
}

// cause leaves out the path, which the caller names.
func cause(err error) error {
	if p, ok := errors.AsType[*os.PathError](err); ok {
		return p.Err
	}
	return err
}

// within reports whether a clean path is another one or below it.
func within(p, parent string) bool {
	rest, ok := strings.CutPrefix(p, parent)
	return ok && (rest == "" || rest[0] == '/')
}
