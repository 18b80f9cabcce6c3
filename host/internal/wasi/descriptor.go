package wasi

import "github.com/tetratelabs/wazero/experimental/sys"

// kind is what a descriptor represents.
type kind uint8

const (
	free      kind = iota // a number that is not in use
	standard              // stdin, stdout or stderr, whatever its number
	preopen               // the directory "/" that the guest found open
	directory             // opened by the guest
	regular               // opened by the guest: any file that is no directory
)

// descriptor is one entry of the table.
type descriptor struct {
	kind    kind
	path    string   // of preopens and what the guest opened: where in the process's FS, at that time
	file    sys.File // nil for a preopen that was only used to find paths
	listing *listing // of a directory; nil until it is read
}

func (d *descriptor) isDirectory() bool { return d.kind == preopen || d.kind == directory }

func (d *descriptor) close() (e sys.Errno) {
	if d.file != nil {
		e = d.file.Close()
	}
	*d = descriptor{}
	return e
}

// table is the open descriptors of a process. Its first slots are its own, so
// that guests which open nothing cost no allocation.
type table struct {
	slots  []descriptor // by number
	opened int          // by the guest, and open still
	made   bool

	first       [4]descriptor
	stdin       input
	stdout, err output
}

// descriptors gives the table, which holds what the guest finds open at first.
func (p *Process) descriptors() *table {
	t := &p.table
	if t.made {
		return t
	}
	t.made = true
	t.stdin.from, t.stdout.to, t.err.to = p.Stdin, p.Stdout, p.Stderr
	t.first = [...]descriptor{
		{kind: standard, file: &t.stdin},
		{kind: standard, file: &t.stdout},
		{kind: standard, file: &t.err},
		{kind: preopen, path: "/"},
	}
	t.slots = t.first[:]
	if p.FS == nil {
		t.slots = t.first[:3]
	}
	return t
}

// lookup gives an open descriptor. It is good until another one is opened.
func (p *Process) lookup(fd uint32) (*descriptor, errno) {
	t := p.descriptors()
	if uint64(fd) >= uint64(len(t.slots)) || t.slots[fd].kind == free {
		return nil, ebadf
	}
	return &t.slots[fd], 0
}

// file gives the file of an open descriptor.
func (p *Process) file(fd uint32) (sys.File, errno) {
	d, e := p.lookup(fd)
	if e != 0 {
		return nil, e
	}
	return p.fileOf(d)
}

// fileOf opens a preopen's file when it is needed for the first time.
func (p *Process) fileOf(d *descriptor) (sys.File, errno) {
	if d.file == nil {
		file, e := p.FS.OpenFile(d.path, sys.O_RDONLY|sys.O_DIRECTORY, 0)
		if e != 0 {
			return nil, errnoOf(e)
		}
		d.file = file
	}
	return d.file, 0
}

// highest is the number of slots that a guest can make use of.
func (p *Process) highest() int { return len(p.table.first) + p.maxFiles() }

// insert gives the lowest free number to what the guest has opened. The caller
// has seen that there is room.
func (p *Process) insert(d descriptor) uint32 {
	t := p.descriptors()
	t.opened++
	for fd := range t.slots {
		if t.slots[fd].kind == free {
			t.slots[fd] = d
			return uint32(fd)
		}
	}
	t.slots = append(t.slots, d)
	return uint32(len(t.slots) - 1)
}

// remove takes a descriptor out of the table and closes it.
func (p *Process) remove(d *descriptor) errno {
	if d.kind == directory || d.kind == regular {
		p.table.opened--
	}
	return errnoOf(d.close())
}

func (p *Process) fdClose(_ memory, a []uint64) errno {
	d, e := p.lookup(uint32(a[0]))
	if e != 0 {
		return e
	}
	return p.remove(d)
}

// fdRenumber moves a descriptor to another number and closes what was there.
func (p *Process) fdRenumber(_ memory, a []uint64) errno {
	from, to := uint32(a[0]), uint32(a[1])
	if _, e := p.lookup(from); e != 0 {
		return e
	}
	if uint64(to) >= uint64(p.highest()) {
		return ebadf
	}
	if from == to {
		return 0
	}
	t := p.descriptors()
	for uint64(to) >= uint64(len(t.slots)) {
		t.slots = append(t.slots, descriptor{})
	}
	_ = p.remove(&t.slots[to]) // as POSIX has it, the number is what matters
	t.slots[to], t.slots[from] = t.slots[from], descriptor{}
	return 0
}
