// Package guestfs is the file system that a guest sees: the directories that its
// call was granted, and nothing else.
//
//	files, err := guestfs.Open(over, call.Grants.Files, guestfs.Limits{})
//	process := &wasi.Process{FS: files, …}
//	…                                   // the call
//	process.Close()
//	usage := files.Close()
//
// A guest may look for "/" once, when it is initialized, and never again: what
// initializes an instance before its calls is given an FS too, the zero value.
//
// # What a guest can do
//
// Each granted directory is opened as an [os.Root] and every path goes through it:
// neither ".." nor a symbolic link leads out, whoever made it and whenever. The
// granted directory itself is reached without following any link. Outside of grants
// there is nothing: "/" and the directories that lead to granted ones can be
// listed and not changed.
//
// Regular files and directories can be opened; pipes, sockets and devices are
// seen and refused, without being touched. Links cannot be made. Permissions
// cannot be changed and are those that the host's umask leaves.
//
// What it sees is the same on every machine with the same files: listings come
// sorted, inodes follow from paths, directories have no size, and the only time
// of a file is that of its last change. So two names of one file look like two
// files.
//
// # Bounds
//
// A call has a bounded number of open files of the host, of bytes that it writes and of
// directory entries that are held for it. Space counts as written where a file
// grows without data, as it does by seeking; so does the entry of each file made.
// One operation reads a bounded piece, and none begins once the call has to end.
//
// wazero has no number for some errors: a limit that is reached is EIO and a
// rename between grants is ENOTSUP, where POSIX has EMFILE, ENOSPC and EXDEV.
//
// The package starts no goroutines. An FS is not safe for concurrent use.
package guestfs
