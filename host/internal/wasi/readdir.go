package wasi

import (
	"encoding/binary"
	"io"
	"io/fs"

	"github.com/tetratelabs/wazero/experimental/sys"
)

const (
	direntSize = 24  // of the header; the name follows
	readChunk  = 128 // entries that are asked of the FS, and held, at a time
)

// listing is how far a directory has been read. A cookie is the number of
// entries before it; "." and ".." come first.
type listing struct {
	window []sys.Dirent // the entries read last
	next   uint64       // cookie of the entry behind the window, which is where the file is
	end    bool         // there are no entries behind the window
	dots   [2]sys.Dirent
}

func (p *Process) fdReaddir(m memory, a []uint64) errno {
	ptr, length, cookie, result := uint32(a[1]), uint32(a[2]), a[3], uint32(a[4])
	if length < direntSize {
		return einval
	}
	buf, e := m.view(ptr, uint64(length))
	if e != 0 {
		return e
	}
	if _, e := m.view(result, 4); e != 0 {
		return e
	}
	file, list, e := p.listingOf(uint32(a[0]))
	if e != 0 {
		return e
	}
	if cookie == 0 {
		if e := list.rewind(file); e != 0 {
			return e
		}
	}
	used, e := list.fill(buf, file, cookie)
	if e != 0 {
		return e
	}
	return m.putUint32(result, uint32(used))
}

// listingOf gives an open directory and how far it has been read.
func (p *Process) listingOf(fd uint32) (sys.File, *listing, errno) {
	d, e := p.lookup(fd)
	if e != 0 {
		return nil, nil, e
	}
	if !d.isDirectory() {
		return nil, nil, ebadf // the Rust library cannot bear ENOTDIR
	}
	file, e := p.fileOf(d)
	if e != 0 {
		return nil, nil, e
	}
	if d.listing == nil {
		inode, ie := file.Ino()
		if ie != 0 {
			return nil, nil, errnoOf(ie)
		}
		d.listing = &listing{dots: [2]sys.Dirent{
			{Name: ".", Type: fs.ModeDir, Ino: inode},
			{Name: "..", Type: fs.ModeDir}, // its inode would reveal what is outside
		}}
		d.listing.start()
	}
	return file, d.listing, 0
}

// fill writes entries into the guest's buffer. It fills the whole buffer unless
// the directory ends before, which is how the guest knows.
func (l *listing) fill(buf []byte, file sys.File, cookie uint64) (used int, e errno) {
	for used < len(buf) {
		entry, e := l.entry(file, cookie)
		if e != 0 {
			return 0, e
		}
		if entry == nil {
			break
		}
		cookie++
		used += putDirent(buf[used:], entry, cookie)
	}
	return used, 0
}

// entry gives the entry at a cookie, nil where the directory ends. It reads
// forward to it, from the beginning where the window is beyond it already.
func (l *listing) entry(file sys.File, cookie uint64) (*sys.Dirent, errno) {
	if cookie < l.first() {
		if e := l.rewind(file); e != 0 {
			return nil, e
		}
	}
	for cookie >= l.next {
		if l.end && cookie == l.next {
			return nil, 0
		}
		if l.end {
			return nil, enoent
		}
		if e := l.refill(file); e != 0 {
			return nil, e
		}
	}
	return &l.window[cookie-l.first()], 0
}

func (l *listing) first() uint64 { return l.next - uint64(len(l.window)) }

// start has the two first entries, which no FS gives, in the window.
func (l *listing) start() {
	l.window, l.next, l.end = l.dots[:], uint64(len(l.dots)), false
}

func (l *listing) rewind(file sys.File) errno {
	if l.next > uint64(len(l.dots)) || l.end {
		if _, e := file.Seek(0, io.SeekStart); e != 0 {
			return errnoOf(e)
		}
	}
	l.start()
	return 0
}

func (l *listing) refill(file sys.File) errno {
	entries, e := file.Readdir(readChunk)
	if e != 0 {
		return errnoOf(e)
	}
	l.window, l.next, l.end = entries, l.next+uint64(len(entries)), len(entries) < readChunk
	return 0
}

// putDirent writes as much of an entry as there is room for.
func putDirent(buf []byte, entry *sys.Dirent, next uint64) int {
	var header [direntSize]byte
	binary.LittleEndian.PutUint64(header[0:], next)
	binary.LittleEndian.PutUint64(header[8:], entry.Ino)
	binary.LittleEndian.PutUint32(header[16:], uint32(len(entry.Name)))
	header[20] = filetype(entry.Type)
	n := copy(buf, header[:])
	return n + copy(buf[n:], entry.Name)
}
