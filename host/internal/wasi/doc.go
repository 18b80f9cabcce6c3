// Package wasi gives guests WASI preview 1, the import module
// wasi_snapshot_preview1, with all of its state in the call: an instance that is
// put back to its image after a call has nothing left of it anywhere.
//
//	err := wasi.Provide(ctx, runtime, processOf)  // once for each runtime
//
//	p := &wasi.Process{Args: …, Stdout: …, FS: …} // for each call; processOf finds it in ctx
//	_, err = function.Call(ctx)
//	open := p.Close()
//
// What a [Process] has no field for cannot be reached: the zero value has empty
// streams, no files, no clocks and no random numbers. Of preview 1 all 46
// functions are there. A request that is refused answers an error number, never
// a trap; sockets, signals and rights are offered by none.
//
// # Behavior
//
// It is that of wazero's implementation, which guests have been tested with,
// except that
//
//   - proc_exit ends the call with an [*Exit] and leaves the instance usable;
//   - fd_close and fd_renumber work on every descriptor, as they affect this call
//     only; a descriptor is closed even when closing its file fails; renumbering
//     goes no higher than numbers can be given out; too many open files is EMFILE;
//   - stdio is no preopen (fd_prestat_get: EBADF), and a stream has no times to set
//     (ENOSYS);
//   - reads and writes check all addresses before they move anything, move at most
//     64 MiB in 1024 buffers at a time, and report how much was moved before an error
//     instead of the error, as POSIX has it;
//   - fd_readdir accepts every cookie of the directory, also out of order, and
//     fills the buffer to its end as the specification has it, also with a part of
//     the last entry;
//   - paths are at most 4096 bytes long; links cannot be made (EPERM); a directory
//     cannot be removed (EINVAL) or renamed (EBUSY) by the name "."; times can be
//     set by the path of a directory, and not of a symbolic link itself (ENOTSUP),
//     and what they are set of has to exist, also when none is set;
//   - poll_oneoff knows absolute times, reports what has happened only, takes files
//     to be ready for writing, and reports a bad descriptor as an event; it takes
//     4096 subscriptions;
//   - a clock that the process does not have is an invalid one (EINVAL), and so is
//     a negative length in fd_allocate.
//
// When a call is wrong in two ways, either error may be reported.
//
// # Memory
//
// Data goes between the guest's memory and a Process's readers, writers and files
// without a copy: those must not keep the slices they are handed. Nothing is
// allocated in proportion to a number that the guest gives.
//
// The numbers and layouts are those of the specification's files
// wasi_snapshot_preview1.witx and typenames.witx. The package starts no goroutines.
package wasi
