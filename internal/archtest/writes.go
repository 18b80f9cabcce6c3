package archtest

import (
	"fmt"
	"go/ast"
	"maps"
	"slices"
	"strings"
)

// Write is a file of the program that changes the file system: whose files they
// are, and what keeps it from files of others.
type Write struct {
	File   string // "bus/natsd/lock.go"
	Calls  string // the names of the calls, sorted, each as often as it is there
	Reason string
}

// Writes is the table of all places that make, change or remove files. A new place
// needs a row, and a case in TestForeignFilesStayAsTheyAre of cmd/flowhost when a
// flag or a setting leads to it.
var Writes = []Write{
	{File: "bus/artifacts/files.go", Calls: "Chtimes Chtimes Chtimes MkdirAll MkdirAll MkdirAll OpenFile OpenFile Remove Remove Remove Remove Remove Rename",
		Reason: "artifacts, files named by digest in the artifacts of a data directory that is marked, through its os.Root, and its directory tmp"},
	{File: "bus/natsd/credentials.go", Calls: "CreateTemp Remove Rename",
		Reason: "the two files with credentials in a data directory that is marked"},
	{File: "bus/natsd/datadir.go", Calls: "MkdirAll",
		Reason: "a data directory that is missing; one that is there is not changed"},
	{File: "bus/natsd/externalconfig.go", Calls: "MkdirAll OpenFile",
		Reason: "a directory of keys that is missing, and files in it that are not there yet"},
	{File: "bus/natsd/files.go", Calls: "Chmod CreateTemp Remove Rename",
		Reason: "what replaceFile has made itself"},
	{File: "bus/natsd/fsync.go", Calls: "CreateTemp Remove",
		Reason: "a temporary file in a data directory that is marked"},
	{File: "bus/history/index.go", Calls: "MkdirAll bbolt.Open",
		Reason: "the index in a data directory that is marked"},
	{File: "bus/history/run.go", Calls: "Remove Remove",
		Reason: "the index in a data directory that is marked, which is made again"},
	{File: "bus/natsd/lock.go", Calls: "Truncate",
		Reason: "the lock's own file, once it is locked"},
	{File: "bus/natsd/lock_unix.go", Calls: "OpenFile",
		Reason: "the lock in a data directory that is marked; links are not followed"},
	{File: "bus/journal/markfile.go", Calls: "OpenFile",
		Reason: "how far the journal went, in a data directory that is marked"},
	{File: "bus/natsd/mend.go", Calls: "MkdirAll Remove",
		Reason: "copies of damaged files of streams in a data directory that is marked, and the server's index of such a stream"},
	{File: "bus/natsd/server.go", Calls: "MkdirTemp NewServer RemoveAll",
		Reason: "streams in a data directory that is marked, or in a temporary directory that goes with the server"},
	{File: "cmd/flowhost/internal/outfile/outfile.go", Calls: "Chmod Chmod CreateTemp OpenFile Remove Rename",
		Reason: "what fmt, plugin build, test and artifact get are asked to write: a file of another kind is refused, and for an artifact each that is not empty"},
	{File: "cmd/flowhost/internal/outfile/outfile_unix.go", Calls: "Chown",
		Reason: "a temporary file gets the owner of the one that it replaces"},
	{File: "cmd/flowhost/cmd_plugin_build.go", Calls: "MkdirTemp RemoveAll WriteFile",
		Reason: "a temporary directory of its own"},
	{File: "cmd/flowhost/internal/serve/outside.go", Calls: "MkdirTemp RemoveAll",
		Reason: "a new temporary directory, for the server in memory of a single run"},
	{File: "cmd/flowhost/internal/serve/filewatch.go", Calls: "Remove",
		Reason: "of a watch, not of a file"},
	{File: "host/internal/compile/cache.go", Calls: "MkdirAll MkdirTemp NewCompilationCacheWithDir Remove Remove RemoveAll Rename WriteFile",
		Reason: "a directory that the host has made and marked; only files with names that wazero and Store give are removed"},
	{File: "host/internal/compile/child.go", Calls: "NewCompilationCacheWithDir",
		Reason: "the directory that its parent has made and marked, or made for itself alone"},
	{File: "host/internal/compile/compiler.go", Calls: "MkdirTemp NewCompilationCacheWithDir RemoveAll",
		Reason: "a new temporary directory, for native code when there is no cache"},
	{File: "host/internal/compile/store.go", Calls: "CreateTemp MkdirAll Remove Rename",
		Reason: "files named by digest in the directory that the host has made and marked"},
	{File: "host/internal/known/identity_linux.go", Calls: "OpenFile",
		Reason: "for reading only, without waiting for the other end of a pipe"},
	{File: "host/internal/doorfile/doorfile.go", Calls: "OpenFile",
		Reason: "asks the guest's file system, guestfs"},
	{File: "host/internal/guestfs/change.go", Calls: "Chtimes Mkdir Remove Rename",
		Reason: "files of guests, below a directory that is granted for writing, through its os.Root"},
	{File: "host/internal/guestfs/mount.go", Calls: "Mkdir",
		Reason: "a directory that is granted for writing and is not there yet"},
	{File: "host/internal/guestfs/open.go", Calls: "OpenFile OpenFile Truncate",
		Reason: "files of guests, below a directory that is granted, through its os.Root"},
	{File: "host/internal/guestfs/regular.go", Calls: "Truncate",
		Reason: "a file of a guest that is open for writing"},
	{File: "host/internal/memory/image_linux.go", Calls: "Ftruncate",
		Reason: "a file in memory that has no name"},
	{File: "host/internal/wasi/descriptor.go", Calls: "OpenFile",
		Reason: "asks the guest's file system, guestfs"},
	{File: "host/internal/wasi/fd.go", Calls: "Truncate",
		Reason: "asks the guest's file system, guestfs"},
	{File: "host/internal/wasi/open.go", Calls: "OpenFile",
		Reason: "asks the guest's file system, guestfs"},
	{File: "host/internal/wasi/path.go", Calls: "Mkdir Rename Rmdir Unlink",
		Reason: "asks the guest's file system, guestfs"},
	{File: "host/internal/wasi/stat.go", Calls: "Truncate",
		Reason: "asks the guest's file system, guestfs"},
	{File: "host/source.go", Calls: "CreateTemp MkdirAll Remove Rename",
		Reason: "files named by digest in the modules of a data directory that is marked"},
}

// Calls that change files: functions of os, syscall and the like, and methods of
// files and roots with the same names.
var writingCalls = map[string]bool{
	"Chmod": true, "Chown": true, "Chtimes": true, "CopyFS": true, "Create": true, "CreateTemp": true,
	"Fchmod": true, "Fchown": true, "Ftruncate": true, "Lchown": true, "Link": true, "Mkdir": true, "MkdirAll": true,
	"MkdirTemp": true, "Mkfifo": true, "Mknod": true, "OpenFile": true, "Remove": true, "RemoveAll": true, "Rename": true,
	"Renameat": true, "Rmdir": true, "Symlink": true, "Truncate": true, "Unlink": true, "Unlinkat": true, "WriteFile": true,

	// Libraries that write files to a path that is passed to them.
	"NewCompilationCacheWithDir": true, "NewServer": true,
}

// CheckWrites holds the calls that change files against a table. Guests are left
// out, whose files are those that they are granted, and what only tests use.
func CheckWrites(packages []*Package, layers []Layer, table []Write) []Violation {
	rows := map[string]Write{}
	for _, w := range table {
		rows[w.File] = w
	}
	var found []Violation
	for _, p := range packages {
		layer := layerOf(layers, p.Folder)
		if layer == nil || layer.TestOnly || guests(p.Folder) {
			continue
		}
		for _, f := range p.Files {
			calls := strings.Join(writes(f), " ")
			row := rows[f.Path]
			if f.Test || calls == row.Calls {
				if !f.Test {
					delete(rows, f.Path)
				}
				continue
			}
			delete(rows, f.Path)
			found = append(found, Violation{f.Path, fmt.Sprintf("it changes files by %q, and the table has %q", calls, row.Calls),
				"add a row to archtest.Writes that states whose files these are, and test it on files of others"})
		}
	}
	for _, file := range slices.Sorted(maps.Keys(rows)) {
		found = append(found, Violation{file, "it changes no files any more, or is gone", "take its row out of archtest.Writes"})
	}
	return found
}

// guests reports whether a directory's programs run inside the sandbox.
func guests(folder string) bool {
	return slices.ContainsFunc([]string{"sdk", "examples", "plugins"}, func(parent string) bool { return within(folder, parent) })
}

// writes are the names of a file's calls that change files, sorted.
func writes(f *File) []string {
	var names []string
	times := importedAs(f, "time")
	lists := importedAs(f, "container/list") != "" || importedAs(f, "container/heap") != ""
	ast.Inspect(f.Syntax, func(n ast.Node) bool {
		call, ok := n.(*ast.CallExpr)
		if !ok {
			return true
		}
		s, ok := call.Fun.(*ast.SelectorExpr)
		switch {
		case !ok:
		case s.Sel.Name == "Open" && isName(s.X, importedAs(f, "go.etcd.io/bbolt")):
			names = append(names, "bbolt.Open")
		case s.Sel.Name == "Truncate" && len(call.Args) == 1 && ofPackage(call.Args[0], times):
			// of a time
		case s.Sel.Name == "Remove" && lists && !isName(s.X, importedAs(f, "os")):
			// of a list
		case writingCalls[s.Sel.Name]:
			names = append(names, s.Sel.Name)
		}
		return true
	})
	slices.Sort(names)
	return names
}

// ofPackage reports whether an expression is a name of a package.
func ofPackage(e ast.Expr, local string) bool {
	s, ok := e.(*ast.SelectorExpr)
	return ok && isName(s.X, local)
}
