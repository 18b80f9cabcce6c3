package wasi

import (
	"context"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
)

// ModuleName is what guests import WASI preview 1 as.
const ModuleName = "wasi_snapshot_preview1"

// Provide instantiates [ModuleName] in a runtime, for all of its instances.
// process finds the process of a call in the context that the call was made
// with; without one the call is denied everything.
func Provide(ctx context.Context, r wazero.Runtime, process func(context.Context) *Process) error {
	module := r.NewHostModuleBuilder(ModuleName)
	for _, f := range functions() {
		module.NewFunctionBuilder().
			WithName(f.name).
			WithGoModuleFunction(f.bind(process), valueTypes(f.params), valueTypes(f.results)).
			Export(f.name)
	}
	_, err := module.Instantiate(ctx)
	return err
}

// function is a function of preview 1. Types are written as a letter for each
// value: i is i32, I is i64.
type function struct {
	name            string
	params, results string
	call            func(p *Process, m memory, params []uint64) errno
}

func (f function) bind(process func(context.Context) *Process) api.GoModuleFunc {
	return func(ctx context.Context, mod api.Module, stack []uint64) {
		p := process(ctx)
		if p == nil {
			p = new(Process)
		}
		e := f.call(p, memoryOf(mod), stack)
		if len(stack) > 0 { // all but proc_exit, which does not return, have a result
			stack[0] = uint64(e)
		}
	}
}

func valueTypes(letters string) []api.ValueType {
	types := make([]api.ValueType, len(letters))
	for i, letter := range letters {
		types[i] = api.ValueTypeI32
		if letter == 'I' {
			types[i] = api.ValueTypeI64
		}
	}
	return types
}

// functions is all of preview 1, in the order of its specification.
func functions() []function {
	return []function{
		{"args_get", "ii", "i", (*Process).argsGet},
		{"args_sizes_get", "ii", "i", (*Process).argsSizesGet},
		{"environ_get", "ii", "i", (*Process).environGet},
		{"environ_sizes_get", "ii", "i", (*Process).environSizesGet},
		{"clock_res_get", "ii", "i", (*Process).clockResGet},
		{"clock_time_get", "iIi", "i", (*Process).clockTimeGet},
		{"fd_advise", "iIIi", "i", (*Process).fdAdvise},
		{"fd_allocate", "iII", "i", (*Process).fdAllocate},
		{"fd_close", "i", "i", (*Process).fdClose},
		{"fd_datasync", "i", "i", (*Process).fdDatasync},
		{"fd_fdstat_get", "ii", "i", (*Process).fdFdstatGet},
		{"fd_fdstat_set_flags", "ii", "i", (*Process).fdFdstatSetFlags},
		{"fd_fdstat_set_rights", "iII", "i", notOffered},
		{"fd_filestat_get", "ii", "i", (*Process).fdFilestatGet},
		{"fd_filestat_set_size", "iI", "i", (*Process).fdFilestatSetSize},
		{"fd_filestat_set_times", "iIIi", "i", (*Process).fdFilestatSetTimes},
		{"fd_pread", "iiiIi", "i", (*Process).fdPread},
		{"fd_prestat_get", "ii", "i", (*Process).fdPrestatGet},
		{"fd_prestat_dir_name", "iii", "i", (*Process).fdPrestatDirName},
		{"fd_pwrite", "iiiIi", "i", (*Process).fdPwrite},
		{"fd_read", "iiii", "i", (*Process).fdRead},
		{"fd_readdir", "iiiIi", "i", (*Process).fdReaddir},
		{"fd_renumber", "ii", "i", (*Process).fdRenumber},
		{"fd_seek", "iIii", "i", (*Process).fdSeek},
		{"fd_sync", "i", "i", (*Process).fdSync},
		{"fd_tell", "ii", "i", (*Process).fdTell},
		{"fd_write", "iiii", "i", (*Process).fdWrite},
		{"path_create_directory", "iii", "i", (*Process).pathCreateDirectory},
		{"path_filestat_get", "iiiii", "i", (*Process).pathFilestatGet},
		{"path_filestat_set_times", "iiiiIIi", "i", (*Process).pathFilestatSetTimes},
		{"path_link", "iiiiiii", "i", (*Process).pathLink},
		{"path_open", "iiiiiIIii", "i", (*Process).pathOpen},
		{"path_readlink", "iiiiii", "i", (*Process).pathReadlink},
		{"path_remove_directory", "iii", "i", (*Process).pathRemoveDirectory},
		{"path_rename", "iiiiii", "i", (*Process).pathRename},
		{"path_symlink", "iiiii", "i", (*Process).pathSymlink},
		{"path_unlink_file", "iii", "i", (*Process).pathUnlinkFile},
		{"poll_oneoff", "iiii", "i", (*Process).pollOneoff},
		{"proc_exit", "i", "", (*Process).procExit},
		{"proc_raise", "i", "i", notOffered},
		{"sched_yield", "", "i", (*Process).schedYield},
		{"random_get", "ii", "i", (*Process).randomGet},
		{"sock_accept", "iii", "i", (*Process).noSocket},
		{"sock_recv", "iiiiii", "i", (*Process).noSocket},
		{"sock_send", "iiiii", "i", (*Process).sockSend},
		{"sock_shutdown", "ii", "i", (*Process).noSocket},
	}
}

// notOffered represents what later versions of WASI have given up.
func notOffered(*Process, memory, []uint64) errno { return enosys }
