package guestfs

import (
	"fmt"

	"github.com/tetratelabs/wazero/experimental/sys"

	"github.com/flowhost/flowhost/run"
)

// Limits bounds what one call does with files. A zero field is its default.
type Limits struct {
	OpenFiles int   // of the host, directories too, open at a time; default 64
	Written   int64 // bytes; default 64 MiB
	Entries   int   // of directories being read; default 65 536, some MiB
}

const (
	defaultOpenFiles = 64
	defaultWritten   = 64 << 20
	defaultEntries   = 1 << 16
)

func (l Limits) withDefaults() Limits {
	if l.OpenFiles <= 0 {
		l.OpenFiles = defaultOpenFiles
	}
	if l.Written <= 0 {
		l.Written = defaultWritten
	}
	if l.Entries <= 0 {
		l.Entries = defaultEntries
	}
	return l
}

// Usage is what a call did.
type Usage struct {
	Open    int    // files and directories that the guest did not close
	Written int64  // bytes, as the limit counts them
	Reached string // the first limit that the guest ran into, "64 open files"
}

// FS is the file system of one call. The zero value shows an empty directory.
type FS struct {
	sys.UnimplementedFS

	over   func() bool // nil: never
	mounts []mount
	limits Limits
	usage  Usage

	open    map[handle]struct{} // nil until something is
	files   int                 // of the host, of those open
	entries int                 // held by open directories
}

// handle is an open file or directory.
type handle interface {
	sys.File
	ofHost() bool // it holds a file of the host open
	release() error
}

// position is int64 by another name: go vet takes each Seek(int64, int) for that
// of io.Seeker and misses its error.
type position = int64

// Open opens the granted directories for one call; with none, the guest finds an
// empty directory. A directory that is granted for writing is made when it is
// missing. No operation begins once over returns true because the call has to end; a nil
// over never does. An error names the grant that cannot be opened on this machine.
func Open(over func() bool, grants []run.FileGrant, limits Limits) (*FS, error) {
	mounts, err := openMounts(grants)
	if err != nil {
		return nil, err
	}
	return &FS{over: over, mounts: mounts, limits: limits.withDefaults()}, nil
}

// Close closes the directories, and what the guest left open. Nothing is there from
// then on.
func (f *FS) Close() Usage {
	usage := f.usage
	usage.Open = len(f.open)
	for h := range f.open {
		_ = h.release() // there is no caller to report it to
	}
	closeMounts(f.mounts)
	f.open, f.files, f.mounts = nil, 0, nil
	return usage
}

// hold counts a file that the guest has opened.
func (f *FS) hold(h handle) sys.File {
	if f.open == nil {
		f.open = map[handle]struct{}{}
	}
	f.open[h] = struct{}{}
	if h.ofHost() {
		f.files++
	}
	return h
}

// close ends an open file. Closing it twice is no error.
func (f *FS) close(h handle) sys.Errno {
	if _, open := f.open[h]; !open {
		return 0
	}
	delete(f.open, h)
	if h.ofHost() {
		f.files--
	}
	return errnoOf(h.release())
}

func (f *FS) roomForFile() sys.Errno {
	if f.files < f.limits.OpenFiles {
		return 0
	}
	return f.reached("%d open files", f.limits.OpenFiles)
}

// charge takes bytes from what the call may write.
func (f *FS) charge(bytes int64) sys.Errno {
	if bytes > f.limits.Written-f.usage.Written {
		return f.reached("%d bytes written", f.limits.Written)
	}
	f.usage.Written += bytes
	return 0
}

func (f *FS) reached(limit string, value any) sys.Errno {
	if f.usage.Reached == "" {
		f.usage.Reached = fmt.Sprintf(limit, value)
	}
	return errLimit
}

// stopped reports that the call's time is up: a host function is not interrupted,
// so it looks itself.
func (f *FS) stopped() bool { return f.over != nil && f.over() }
