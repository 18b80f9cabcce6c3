package wasi

import (
	"bytes"
	"fmt"
	"maps"
	"math/rand/v2"
	"path"
	"slices"
	"strings"
	"testing"
)

// twins are two guests that are given the same, one of this package and one of
// wazero's implementation.
type twins struct {
	ours, theirs *guest
	fs           [2]*memFS
	out          [2]*bytes.Buffer
}

func newTwins(t testing.TB, seed uint64, paths ...string) *twins {
	w := &twins{}
	process := func(i int) *Process {
		w.fs[i], w.out[i] = newMemFS(paths...), new(bytes.Buffer)
		var clock int64
		return &Process{
			Args: []string{"program", "", "two words"}, Env: []string{"B=2", "A=1"},
			Stdin: strings.NewReader("what is read from stdin"), Stdout: w.out[i], Stderr: w.out[i],
			Random:   rand.NewChaCha8([32]byte{byte(seed)}),
			Walltime: func() (int64, int32) { clock++; return 1_700_000_000 + clock, 5 },
			Nanotime: func() int64 { clock++; return clock },
			Sleep:    func(ns int64) { clock += ns },
			FS:       w.fs[i], MaxFiles: 1000,
		}
	}
	w.ours, w.theirs = newGuest(t, process(0)), newTheirs(t, process(1))
	return w
}

// call calls both and fails the test where they differ, in the answer or in what
// is in memory.
func (w *twins) call(name string, params ...uint64) errno {
	t := w.ours.t
	t.Helper()
	ours, theirs := w.ours.call(name, params...), w.theirs.call(name, params...)
	if ours != theirs {
		t.Fatalf("%s%v answers %d, wazero's %d", name, params, ours, theirs)
	}
	if a, b := w.ours.memory(), w.theirs.memory(); !bytes.Equal(a, b) {
		for i := range a {
			if a[i] != b[i] {
				t.Fatalf("%s%v answers %d; memory at %#x:\n%x\n%x (wazero's)", name, params, ours, i, a[i:min(len(a), i+64)], b[i:min(len(b), i+64)])
			}
		}
	}
	return ours
}

func (w *twins) put(ptr int, values ...any) {
	w.ours.put(ptr, values...)
	w.theirs.put(ptr, values...)
}

func (w *twins) compareEffects() {
	t := w.ours.t
	t.Helper()
	if a, b := w.out[0].String(), w.out[1].String(); a != b {
		t.Errorf("output %q, wazero's %q", a, b)
	}
	describe := func(f *memFS) map[string]string {
		tree := map[string]string{}
		for p, n := range f.nodes {
			tree[p] = fmt.Sprint(n.mode, n.link, n.data, n.atim, n.mtim)
		}
		return tree
	}
	if a, b := describe(w.fs[0]), describe(w.fs[1]); !maps.Equal(a, b) {
		t.Errorf("files\n%v\nwazero's\n%v", a, b)
	}
}

// script makes random calls that both implementations must answer alike.
type script struct {
	*twins
	succeeded map[string]bool // by the name of the function
	*rand.Rand
}

// Places in the guest's memory.
const (
	atPath, atPath2, atVectors = 0x1000, 0x1100, 0x2000
	atData, atResult           = 0x3000, 0x8000
)

func (s *script) call(name string, params ...uint64) {
	if s.twins.call(name, params...) == 0 {
		s.succeeded[name] = true
	}
}

func (s *script) fd(from int) uint64 { return uint64(from + s.IntN(9-from)) }

func (s *script) path(at int) (uint64, uint64) {
	p := pick(s, "a", "a", "dir", "dir", "dir/b", "dir/b", "dir/sub", "link", "./a", "a/", "dir/", "dir/../a", "new", "dir/new", "no/where", "a/under", "../out", "/a", "dir/../../out", "x\xff")
	s.put(at, p)
	return uint64(at), uint64(len(p))
}

func (s *script) buffers() (ptr, count uint64) {
	n := uint32(s.IntN(40)) + 1
	s.put(atVectors, uint32(atData), n, uint32(atData+0x100), uint32(17))
	return atVectors, uint64(s.IntN(3))
}

func pick[T any](s *script, list ...T) T { return list[s.IntN(len(list))] }

// step is one call. Cases that the package's documentation lists as different
// are not among them.
func (s *script) step() {
	switch name := functions()[s.IntN(len(functions()))].name; name {
	case "args_get", "environ_get", "args_sizes_get", "environ_sizes_get":
		s.call(name, atResult, atData)
	case "clock_res_get":
		s.call(name, uint64(s.IntN(4)), atResult)
	case "clock_time_get":
		s.call(name, uint64(s.IntN(4)), 0, atResult)
	case "random_get":
		s.call(name, atData, uint64(s.IntN(300)))
	case "sched_yield":
		s.call(name)
	case "proc_raise":
		s.call(name, 9)
	case "fd_fdstat_set_rights":
		s.call(name, s.fd(0), 0, 0)
	case "sock_accept", "sock_recv", "sock_send", "sock_shutdown":
		s.call(name, append([]uint64{s.fd(0)}, make([]uint64, len(s.theirs.module.ExportedFunction(name).Definition().ParamTypes())-1)...)...)
	case "fd_close", "fd_sync", "fd_datasync":
		if s.IntN(4) == 0 {
			s.call(name, s.fd(0))
		}
	case "fd_renumber":
		if from, to := s.fd(4), s.fd(4); from != to {
			s.call(name, from, to)
		}
	default:
		s.fileStep(name)
		s.pathStep(name)
	}
}

// timeFlags leaves out what is invalid: wazero reads the clock before it says so.
var timeFlags = []uint64{0, 1, 2, 4, 5, 6, 8, 9, 10}

func (s *script) fileStep(name string) {
	switch name {
	case "fd_advise":
		s.call(name, s.fd(0), 0, 0, uint64(s.IntN(8)))
	case "fd_allocate":
		s.call(name, s.fd(0), uint64(s.IntN(50)), uint64(s.IntN(50)))
	case "fd_fdstat_get", "fd_filestat_get":
		s.call(name, s.fd(0), atResult)
	case "fd_prestat_get":
		s.call(name, s.fd(3), atResult)
	case "fd_prestat_dir_name":
		s.call(name, s.fd(3), atResult, uint64(s.IntN(3)))
	case "fd_fdstat_set_flags":
		s.call(name, s.fd(0), uint64(s.IntN(32)&s.IntN(32)))
	case "fd_filestat_set_size":
		s.call(name, s.fd(0), uint64(s.IntN(60)))
	case "fd_filestat_set_times":
		s.call(name, s.fd(3), uint64(s.IntN(1e9)), uint64(s.IntN(1e9)), pick(s, timeFlags...))
	case "fd_read", "fd_write":
		ptr, n := s.buffers()
		s.call(name, s.fd(0), ptr, n, atResult)
	case "fd_pread", "fd_pwrite":
		ptr, n := s.buffers()
		s.call(name, s.fd(0), ptr, n, uint64(s.IntN(60)), atResult)
	case "fd_readdir":
		s.call(name, s.fd(0), atData, 0x1000, 0, atResult)
	case "fd_seek":
		s.call(name, s.fd(0), uint64(s.IntN(100)-50), uint64(s.IntN(3)), atResult)
	case "fd_tell":
		s.call(name, s.fd(0), atResult)
	}
}

func (s *script) pathStep(name string) {
	fd := pick(s, 3, 3, s.fd(3))
	ptr, n := s.path(atPath)
	slash := s.ours.memory()[ptr+n-1] == '/'
	if slash && s.linkNamed(s.ours.text(int(ptr), int(n)-1)) {
		return // systems do not agree on links with a slash, least of all on those that lead nowhere
	}
	switch name {
	case "path_create_directory", "path_remove_directory", "path_unlink_file":
		s.call(name, fd, ptr, n)
	case "path_filestat_get":
		s.call(name, fd, uint64(s.IntN(2)), ptr, n, atResult)
	case "path_filestat_set_times":
		s.call(name, fd, lookupFollow, ptr, n, uint64(s.IntN(1e9)), uint64(s.IntN(1e9)), pick(s, timeFlags...))
	case "path_open":
		oflags := uint64(s.IntN(16) & s.IntN(16))
		if slash {
			oflags &^= uint64(openCreate)
		}
		s.call(name, fd, uint64(s.IntN(2)), ptr, n, oflags, pick(s, 0, rightRead, rightWrite, rightRead|rightWrite), 0, uint64(s.IntN(2)), atResult)
	case "path_readlink":
		s.call(name, fd, ptr, n, atData, uint64(s.IntN(10)), atResult)
	case "path_rename":
		to, m := s.path(atPath2)
		if !slash && s.ours.memory()[to+m-1] != '/' { // of many faults then possible each reports another
			s.call(name, fd, ptr, n, pick(s, 3, 3, s.fd(3)), to, m)
		}
	}
}

// offered is how many functions can succeed in a script: not sockets, proc_raise,
// fd_fdstat_set_rights, and those that it leaves out.
const offered = 46 - 4 - 1 - 1 - 4

// linkNamed reports whether links, which renaming moves about, have the name.
func (s *script) linkNamed(name string) bool {
	for p, n := range s.fs[0].nodes {
		if n.link != "" && path.Base(p) == path.Base(name) {
			return true
		}
	}
	return false
}

func TestAnswersLikeWazero(t *testing.T) {
	t.Parallel()
	succeeded := map[string]bool{}
	for seed := range uint64(80) {
		w := newTwins(t, seed, "/a", "/dir/", "/dir/b", "/dir/sub/", "/link->dir/b", "/dirlink->dir")
		s := &script{w, succeeded, rand.New(rand.NewPCG(seed, 1))}
		for i := range 250 {
			if i%10 == 0 { // there shall always be files that are open
				s.pathStep("path_open")
			}
			s.step()
		}
		w.compareEffects()
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
	if len(succeeded) != offered {
		t.Errorf("%d functions ever succeeded, want %d: %v", len(succeeded), offered, slices.Sorted(maps.Keys(succeeded)))
	}
}

// pointers is which parameters are addresses, by function, with values for the
// others that the call would succeed with.
var pointers = []struct {
	name   string
	at     []int
	params []uint64
}{
	{"args_get", []int{0, 1}, []uint64{atResult, atData}},
	{"args_sizes_get", []int{0, 1}, []uint64{atResult, atData}},
	{"environ_get", []int{0, 1}, []uint64{atResult, atData}},
	{"environ_sizes_get", []int{0, 1}, []uint64{atResult, atData}},
	{"clock_res_get", []int{1}, []uint64{0, atResult}},
	{"clock_time_get", []int{2}, []uint64{0, 0, atResult}},
	{"random_get", []int{0}, []uint64{atData, 8}},
	{"fd_fdstat_get", []int{1}, []uint64{1, atResult}},
	{"fd_filestat_get", []int{1}, []uint64{1, atResult}},
	{"fd_prestat_get", []int{1}, []uint64{3, atResult}},
	{"fd_prestat_dir_name", []int{1}, []uint64{3, atResult, 1}},
	{"fd_read", []int{1, 3}, []uint64{0, atVectors, 2, atResult}},
	{"fd_write", []int{1, 3}, []uint64{1, atVectors, 2, atResult}},
	{"fd_pread", []int{1, 4}, []uint64{4, atVectors, 2, 0, atResult}},
	{"fd_pwrite", []int{1, 4}, []uint64{4, atVectors, 2, 0, atResult}},
	{"fd_readdir", []int{1, 4}, []uint64{3, atData, 4096, 0, atResult}},
	{"fd_seek", []int{3}, []uint64{4, 0, 0, atResult}},
	{"fd_tell", []int{1}, []uint64{4, atResult}},
	{"path_create_directory", []int{1}, []uint64{3, atPath, 3}},
	{"path_filestat_get", []int{2, 4}, []uint64{3, 0, atPath, 3, atResult}},
	{"path_filestat_set_times", []int{2}, []uint64{3, 1, atPath, 3, 0, 0, 0}},
	{"path_link", []int{2, 5}, []uint64{3, 0, atPath, 3, 3, atPath, 3}},
	{"path_open", []int{2, 8}, []uint64{3, 1, atPath, 3, 0, rightRead, 0, 0, atResult}},
	{"path_readlink", []int{1, 3, 5}, []uint64{3, atPath2, 4, atData, 100, atResult}},
	{"path_remove_directory", []int{1}, []uint64{3, atPath, 3}},
	{"path_rename", []int{1, 4}, []uint64{3, atPath, 3, 3, atPath, 3}},
	{"path_symlink", []int{0, 3}, []uint64{atPath, 3, 3, atPath, 3}},
	{"path_unlink_file", []int{1}, []uint64{3, atPath, 3}},
	{"poll_oneoff", []int{0, 1, 3}, []uint64{atData, atResult, 1, atPath2}},
}

func TestAddressesOutsideOfMemory(t *testing.T) {
	t.Parallel()
	for _, f := range pointers {
		for _, i := range f.at {
			for _, bad := range []uint64{2<<16 - 1, 2 << 16, 1<<32 - 1, 1<<32 - 8} {
				if f.name == "fd_prestat_dir_name" && bad < 2<<16 {
					continue // one byte fits
				}
				w := newTwins(t, 0, "/a", "/dir/", "/link->dir")
				w.put(atPath, "dir")
				w.put(atPath2, "link")
				w.put(atVectors, uint32(atData), uint32(4), uint32(atData), uint32(4))
				w.ours.open("a", 0, rightRead|rightWrite)
				w.theirs.open("a", 0, rightRead|rightWrite)
				params := append([]uint64(nil), f.params...)
				params[i] = bad
				w.ours.want(efault, f.name, params...)
				w.theirs.want(efault, f.name, params...)
				if w.out[0].Len() > 0 {
					t.Errorf("%s%v wrote %q", f.name, params, w.out[0])
				}
			}
		}
	}
}

func TestBuffersOutsideOfMemory(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"fd_read", "fd_write"} {
		for _, bad := range [][2]uint32{{1<<32 - 1, 1}, {1<<32 - 1, 1<<32 - 1}, {0, 1<<32 - 1}, {2 << 16, 1}, {2<<16 - 1, 2}} {
			w := newTwins(t, 0)
			w.put(atVectors, bad)
			fd := uint64(0)
			if name == "fd_write" {
				fd = 1
			}
			if e := w.call(name, fd, atVectors, 1, atResult); e != efault {
				t.Errorf("%s with the buffer %x answered %d", name, bad, e)
			}
		}
		w := newTwins(t, 0)
		w.ours.want(efault, name, 1, atVectors, 1<<29+1, atResult) // ×8 is more than 32 bits
	}
}
