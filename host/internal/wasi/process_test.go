package wasi

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/experimental/sys"
	"github.com/tetratelabs/wazero/imports/wasi_snapshot_preview1"
)

func TestFunctionsHaveTheTypesOfWazero(t *testing.T) {
	t.Parallel()
	ours := worlds()["ours"].runtime.Module(ModuleName).ExportedFunctionDefinitions()
	theirs := worlds()["theirs"].runtime.Module(wasi_snapshot_preview1.ModuleName).ExportedFunctionDefinitions()
	if len(ours) != 46 || len(theirs) != 46 {
		t.Errorf("%d functions, wazero has %d, preview 1 has 46", len(ours), len(theirs))
	}
	for name, want := range theirs {
		got := ours[name]
		if got == nil {
			t.Errorf("%s is missing", name)
			continue
		}
		if string(got.ParamTypes()) != string(want.ParamTypes()) || string(got.ResultTypes()) != string(want.ResultTypes()) {
			t.Errorf("%s: %v -> %v, want %v -> %v", name, got.ParamTypes(), got.ResultTypes(), want.ParamTypes(), want.ResultTypes())
		}
	}
}

func TestProvideTwice(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	r := wazero.NewRuntimeWithConfig(ctx, wazero.NewRuntimeConfigInterpreter())
	defer r.Close(ctx)
	if err := Provide(ctx, r, processOf); err != nil {
		t.Fatal(err)
	}
	if err := Provide(ctx, r, processOf); err == nil {
		t.Error("the same module was instantiated twice")
	}
}

// denied is what each function answers a call without a process, or with the
// zero one, where it does not succeed.
var denied = map[string]errno{
	"clock_res_get": einval, "clock_time_get": einval, "random_get": enosys, "proc_raise": enosys, "fd_fdstat_set_rights": enosys,
	"fd_prestat_get": ebadf, "fd_prestat_dir_name": ebadf, "fd_readdir": ebadf, "fd_seek": ebadf, "fd_tell": ebadf,
	"fd_allocate": enosys, "fd_filestat_set_size": enosys, "fd_filestat_set_times": enosys,
	"fd_pread": ebadf, "fd_pwrite": ebadf, "fd_renumber": 0,
	"path_create_directory": ebadf, "path_filestat_get": ebadf, "path_filestat_set_times": ebadf, "path_link": ebadf, "path_open": ebadf,
	"path_readlink": ebadf, "path_remove_directory": ebadf, "path_rename": ebadf, "path_symlink": ebadf, "path_unlink_file": ebadf,
	"sock_accept": ebadf, "sock_recv": ebadf, "sock_send": ebadf, "sock_shutdown": ebadf,
}

func TestZeroProcessDeniesEverything(t *testing.T) {
	t.Parallel()
	args := map[string][]uint64{"fd_allocate": {0, 0, 1}, "fd_filestat_set_size": {0, 1}, "fd_advise": {0, 0, 0, 0}, "fd_close": {1}, "fd_datasync": {0}, "fd_sync": {0},
		"fd_filestat_set_times": {0, 0, 0, 0}, "fd_fdstat_set_flags": {0, 0}, "fd_renumber": {0, 1}, "fd_fdstat_set_rights": {0, 0, 0}, "proc_raise": {1}, "sched_yield": {},
		"sock_accept": {3, 0, 0}, "sock_recv": {3, 0, 0, 0, 0, 0}, "sock_send": {3, 0, 0, 0, 0}, "sock_shutdown": {3, 0}}
	for _, f := range pointers {
		args[f.name] = f.params
	}
	for _, f := range functions() {
		if f.name == "proc_exit" {
			continue
		}
		for _, p := range []*Process{nil, {}} {
			g := newGuest(t, p)
			g.put(atPath, "dir")
			g.put(atVectors, uint32(atData), uint32(4))
			g.put(atPath2, "link")
			want := denied[f.name]
			g.want(want, f.name, args[f.name]...)
		}
	}
}

func TestGuestWithoutMemory(t *testing.T) {
	t.Parallel()
	m := worlds()["ours"].instantiate(t, everything(0), wazero.NewModuleConfig())
	var clock int64
	files := newMemFS("/a")
	p := &Process{FS: files, Random: strings.NewReader("x"), Nanotime: func() int64 { return clock }, Walltime: func() (int64, int32) { return 0, 0 }}
	a, _ := files.OpenFile("/a", sys.O_RDWR, 0)
	p.insert(descriptor{kind: regular, file: a, path: "/a"}) // the guest cannot name any
	g := &guest{t, m, withProcess(context.Background(), p)}
	for _, f := range pointers {
		g.want(efault, f.name, f.params...)
	}
}

func TestExit(t *testing.T) {
	t.Parallel()
	ctx := withProcess(t.Context(), &Process{})
	for _, w := range []*world{worlds()["ours"], compiledWorlds()["ours"]} {
		g := w.newGuest(t, ctx, wazero.NewModuleConfig())
		for _, status := range []uint64{0, 1, 75, 1<<32 - 1} {
			_, err := g.try("proc_exit", status)
			exit, ok := errors.AsType[*Exit](err)
			if !ok || uint64(exit.Status) != status {
				t.Fatalf("proc_exit(%d): %v", status, err)
			}
			if g.module.IsClosed() {
				t.Fatal("the instance is closed")
			}
			g.want(0, "sched_yield") // it continues
		}
	}
}

func TestSleepMayUnwind(t *testing.T) {
	t.Parallel()
	interrupted := errors.New("interrupted")
	g := newGuest(t, &Process{Sleep: func(int64) { panic(interrupted) }})
	g.put(atData, clockSubscription(1, clockMonotonic, 1000, 0))
	if _, err := g.try("poll_oneoff", atData, atResult, 1, atPath); !errors.Is(err, interrupted) {
		t.Fatal(err)
	}
	g.want(0, "sched_yield")
}

func TestRandomRunsOut(t *testing.T) {
	t.Parallel()
	g := newGuest(t, &Process{Random: strings.NewReader("0123456789")})
	g.want(0, "random_get", atData, 4)
	g.want(0, "random_get", atData+4, 4)
	if got := g.text(atData, 8); got != "01234567" {
		t.Errorf("random numbers %q", got)
	}
	g.want(eio, "random_get", atData, 4)
	g = newGuest(t, &Process{Random: iotest.ErrReader(errors.New("broken"))})
	g.want(eio, "random_get", atData, 4)
}

func TestClockResolution(t *testing.T) {
	t.Parallel()
	p := &Process{Nanotime: func() int64 { return 5 }, Resolution: 1_000_000}
	g := newGuest(t, p)
	g.want(0, "clock_res_get", clockMonotonic, atResult)
	if got := g.uint64(atResult); got != 1_000_000 {
		t.Errorf("resolution %d", got)
	}
	g.want(einval, "clock_res_get", clockRealtime, atResult) // there is none
	g.want(einval, "clock_time_get", clockRealtime, 0, atResult)
	g.want(0, "clock_time_get", clockMonotonic, 0, atResult)
	if got := g.uint64(atResult); got != 5 {
		t.Errorf("time %d", got)
	}
}
