package wasi

import "github.com/tetratelabs/wazero/experimental/sys"

// How a path is opened, oflags.
const (
	openCreate uint16 = 1 << iota
	openDirectory
	openExclusive
	openTruncate
)

func (p *Process) pathOpen(m memory, a []uint64) errno {
	dirflags, length, oflags, rights, fdflags, result := uint32(a[1]), uint32(a[3]), uint16(a[4]), a[5], uint16(a[7]), uint32(a[8])
	t, e := p.resolve(m, uint32(a[0]), uint32(a[2]), length)
	if e != 0 {
		return e
	}
	flags := openFlags(dirflags, oflags, fdflags, rights)
	create := oflags&openCreate != 0 // directories are made by path_create_directory
	if t.slash {                     // has a link followed, too
		flags = flags&^sys.O_NOFOLLOW | sys.O_DIRECTORY
	}
	switch {
	case length == 0, create && oflags&openDirectory != 0:
		return einval
	case create && t.slash:
		return eisdir
	case p.descriptors().opened >= p.maxFiles():
		return emfile
	}
	if _, e := m.view(result, 4); e != 0 {
		return e
	}
	d, e := p.open(t.path, flags)
	if e != 0 {
		return e
	}
	return m.putUint32(result, p.insert(d))
}

// open opens what is at a path, and makes sure that it is a directory where one
// was asked for: not every FS does.
func (p *Process) open(path string, flags sys.Oflag) (descriptor, errno) {
	file, e := p.FS.OpenFile(path, flags, 0o600)
	if e != 0 {
		return descriptor{}, errnoOf(e)
	}
	d := descriptor{kind: regular, path: path, file: file}
	isDirectory, e := file.IsDir()
	switch {
	case e != 0:
	case isDirectory:
		d.kind = directory
	case flags&sys.O_DIRECTORY != 0:
		e = sys.ENOTDIR
	}
	if e != 0 {
		_ = file.Close() // the first error is reported
	}
	return d, errnoOf(e)
}

func openFlags(dirflags uint32, oflags, fdflags uint16, rights uint64) sys.Oflag {
	var flags sys.Oflag
	if dirflags&lookupFollow == 0 {
		flags |= sys.O_NOFOLLOW
	}
	for _, f := range [...]struct {
		set  bool
		flag sys.Oflag
	}{
		{oflags&openCreate != 0, sys.O_CREAT},
		{oflags&openDirectory != 0, sys.O_DIRECTORY},
		{oflags&openExclusive != 0 && oflags&openDirectory == 0, sys.O_EXCL},
		{oflags&openTruncate != 0, sys.O_TRUNC},
		{fdflags&fdAppend != 0, sys.O_APPEND},
		{fdflags&fdDsync != 0, sys.O_DSYNC},
		{fdflags&fdNonblock != 0, sys.O_NONBLOCK},
		{fdflags&fdRsync != 0, sys.O_RSYNC},
		{fdflags&fdSync != 0, sys.O_SYNC},
	} {
		if f.set {
			flags |= f.flag
		}
	}
	return flags | openMode(oflags, fdflags, rights)
}

// openMode reads from the rights whether a file is to be read or written. A
// guest that asks for neither, as some do, writes when it creates, truncates or
// appends.
func openMode(oflags, fdflags uint16, rights uint64) sys.Oflag {
	switch rights & (rightRead | rightWrite) {
	case rightRead | rightWrite:
		return sys.O_RDWR
	case rightWrite:
		return sys.O_WRONLY
	case rightRead:
		return sys.O_RDONLY
	}
	if oflags&(openCreate|openTruncate) != 0 || fdflags&fdAppend != 0 {
		return sys.O_RDWR
	}
	return sys.O_RDONLY
}
