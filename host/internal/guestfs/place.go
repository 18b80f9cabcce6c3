package guestfs

import (
	"path"
	"slices"
	"strings"

	"github.com/tetratelabs/wazero/experimental/sys"
)

// maxPath is the length of paths in bytes, Linux's PATH_MAX.
const maxPath = 4096

// place is where a path of the guest leads.
type place struct {
	path  string // absolute and clean
	mount *mount // nil for "/" and the directories that lead to mounts
	rel   string // below the mount's root; "." is the root, a final slash is kept
}

// find resolves a path, as far as that can be done without looking at files.
// With ENOENT the place's path is set.
func (f *FS) find(p string) (place, sys.Errno) {
	switch {
	case f.stopped():
		return place{}, errStopped
	case len(p) > maxPath:
		return place{}, sys.ENAMETOOLONG
	case strings.IndexByte(p, 0) >= 0:
		return place{}, sys.EINVAL
	}
	at := place{path: path.Clean("/" + p)}
	for i := range f.mounts {
		m := &f.mounts[i]
		if !within(at.path, m.guest) {
			continue
		}
		at.mount, at.rel = m, "."
		if rest := strings.TrimPrefix(at.path[len(m.guest):], "/"); rest != "" {
			at.rel = rest
			if strings.HasSuffix(p, "/") {
				at.rel += "/"
			}
		}
		return at, 0
	}
	if f.leads(at.path) {
		return at, 0
	}
	return at, sys.ENOENT
}

// findChange resolves a path at which something is to be changed.
func (f *FS) findChange(p string) (place, sys.Errno) {
	at, errno := f.find(p)
	switch {
	case errno == sys.ENOENT && f.leads(path.Dir(at.path)):
		return at, sys.EROFS
	case errno != 0:
		return at, errno
	case at.mount == nil || !at.mount.write:
		return at, sys.EROFS
	case at.rel == ".":
		return at, sys.EPERM // the grant's own directory
	}
	return at, 0
}

// leads reports whether there is a directory at a path because of what lies below
// it. The root is always there.
func (f *FS) leads(p string) bool {
	return p == "/" || slices.ContainsFunc(f.mounts, func(m mount) bool { return within(m.guest, p) })
}

// below names what a leading directory holds.
func (f *FS) below(p string) []string {
	var names []string
	for _, m := range f.mounts {
		if p != "/" && !within(m.guest, p) {
			continue
		}
		name, _, _ := strings.Cut(strings.TrimPrefix(strings.TrimPrefix(m.guest, p), "/"), "/")
		names = append(names, name)
	}
	slices.Sort(names)
	return slices.Compact(names)
}
