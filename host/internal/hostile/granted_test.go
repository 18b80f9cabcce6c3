package hostile

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"
)

const (
	grantedFolder = "granted"
	inFolder      = "in.txt"
	kept          = "not for guests"
	mostWritten   = 80 << 20 // bytes that a call may leave in its directory: 64 MiB and some
)

// newFolder makes a directory in dir with one that is granted in it. That holds a
// file, and links that lead out of it to a file beside it.
func newFolder(dir string) (string, error) {
	folder, err := os.MkdirTemp(dir, "folder-")
	granted := filepath.Join(folder, grantedFolder)
	return folder, errors.Join(err,
		os.Mkdir(granted, 0o700),
		os.WriteFile(filepath.Join(granted, inFolder), []byte("for guests"), 0o600),
		os.WriteFile(filepath.Join(folder, "kept.txt"), []byte(kept), 0o600),
		os.Symlink("../kept.txt", filepath.Join(granted, "beside")),
		os.Symlink("..", filepath.Join(granted, "up")),
		os.Symlink("/", filepath.Join(granted, "slash")),
	)
}

// checkFolder looks at what is left of a directory, and removes it.
func checkFolder(folder string) error {
	defer os.RemoveAll(folder)
	beside, err := os.ReadFile(filepath.Join(folder, "kept.txt"))
	if string(beside) != kept {
		return fmt.Errorf("the file beside the granted folder: %q, %w", beside, err)
	}
	var size int64
	err = filepath.WalkDir(filepath.Join(folder, grantedFolder), func(_ string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.Type().IsRegular() {
			return err
		}
		info, err := entry.Info()
		if err == nil {
			size += info.Size()
		}
		return err
	})
	if size > mostWritten {
		return fmt.Errorf("there are %d bytes in the granted folder, bound %d", size, mostWritten)
	}
	return err
}

// Imports of the guests that were granted a directory, in this order.
var fileImports = []imported{
	{wasi, "path_open", errno(i32, i32, i32, i32, i32, i64, i64, i32, i32)},
	{wasi, "path_symlink", errno(i32, i32, i32, i32, i32)},
	{wasi, "fd_renumber", errno(i32, i32)},
	{wasi, "fd_write", errno(i32, i32, i32, i32)},
	{wasi, "fd_filestat_set_size", errno(i32, i64)},
	{wasi, "fd_allocate", errno(i32, i64, i64)},
	{wasi, "fd_seek", errno(i32, i64, i32, i32)},
}

const (
	pathAt, opened  = 1_024, 8 // addresses: of a path, of the descriptor of an opened file
	readRight       = 1 << 1
	writeRight      = 1 << 6
	createFile      = 1
	mostOpen        = 64
	callSymlink     = 1
	callRenumber    = 2
	callWrite       = 3
	callSetSize     = 4
	callAllocate    = 5
	callSeek        = 6
	largeSize       = 1 << 40
	afterOpen       = 99 // what a guest returns whose first file cannot be opened
	firstDescriptor = 3  // the directory "/"
)

// open gives the error number of opening a path that lies in memory.
func open(at, length, flags int, rights int64) code {
	return seq(number(firstDescriptor), number(1), number(at), number(length), number(flags),
		number64(rights), number64(rights), number(0), number(opened), call(0))
}

// withFile is a guest that opens a file and does something with it. Its locals
// are two i32.
func withFile(path string, flags int, rights int64, then ...code) func() []byte {
	return guest{
		imports: fileImports, data: []code{at(0, words(64<<10, 32<<10)), at(pathAt, path)}, pages: 2,
		functions: []function{{export: "run", kind: task, locals: code{1, 2, i32}, body: seq(
			open(pathAt, len(path), flags, rights), ifThen, number(afterOpen), ret, end, seq(then...), number(0))}},
	}.bytes
}

// grantedFiles is guests that were granted a directory and want more.
func grantedFiles() []attack {
	const file, made = "data/" + inFolder, "data/made"
	handle := seq(number(opened), load)
	write := seq(handle, number(0), number(1), number(32), call(callWrite))
	thrice := []step{{"", succeeds}, {"", succeeds}, {"", succeeds}}
	attacks := []attack{
		{name: "granted/hoard", what: "a file opened again and again and never closed", calls: thrice,
			module: withFile(file, 0, readRight,
				upTo(0, 10_000, 1, open(pathAt, len(file), 0, readRight), eqz, get(1), add, set(1)),
				number(mostOpen), get(1), ltU, ifThen, number(1), ret, end)},
		{name: "granted/renumber", what: "an open file under the number 2^31-1, in a table that is an array", calls: thrice,
			module: withFile(file, 0, readRight, handle, number(1<<31-1), call(callRenumber), drop)},
		{name: "granted/read only", what: "writing into what is granted for reading", calls: thrice,
			module: func() []byte { return refusedPaths(writeRight, file, made) }},
		{name: "granted/links out", what: "links that lead out of the folder, and other ways out", calls: thrice,
			module: func() []byte {
				return refusedPaths(readRight, "data/beside", "data/up/kept.txt", "data/slash/etc/hostname", "data/../kept.txt",
					"data/up/"+grantedFolder+"/up/kept.txt", "/etc/hostname", "../etc/hostname", "data/slash", "data/up")
			}},
		{name: "granted/new link", what: "a link of the guest's own", writes: true, calls: thrice, module: withFile(file, 0, readRight,
			number(pathAt), number(len("data")), number(firstDescriptor), number(pathAt), number(len(file)-1), call(callSymlink),
			eqz, ifThen, number(1), ret, end)},
		{name: "granted/full disk", what: "a file that grows until no more is taken", writes: true, deadline: 10 * time.Second,
			answers: 12 * time.Second, want: succeeds,
			module: withFile(made, createFile, writeRight, loop, write, eqz, brIf(0), end)},
		{name: "granted/sparse file", what: "files of a TiB without data", writes: true, want: succeeds,
			module: withFile(made, createFile, writeRight,
				handle, number64(largeSize), call(callSetSize), drop,
				handle, number64(0), number64(largeSize), call(callAllocate), drop,
				handle, number64(largeSize), number(0), number(32), call(callSeek), drop, write, drop)},
	}
	for i := range attacks {
		attacks[i].granted = true
	}
	return attacks
}

// refusedPaths is a guest that opens paths and returns the number of the first
// one, from 1, that can be opened.
func refusedPaths(rights int64, paths ...string) []byte {
	const file = "data/" + inFolder
	g := guest{imports: fileImports, data: []code{at(pathAt, file)}}
	body := seq(open(pathAt, len(file), 0, readRight), ifThen, number(afterOpen), ret, end)
	address := pathAt + len(file)
	for i, path := range paths {
		g.data = append(g.data, at(address, path))
		for _, flags := range []int{0, createFile, 2} { // 2: a directory
			body = append(body, seq(open(address, len(path), flags, rights), eqz, ifThen, number(i+1), ret, end)...)
		}
		address += len(path)
	}
	g.functions = []function{{export: "run", kind: task, body: seq(body, number(0))}}
	return g.bytes()
}
