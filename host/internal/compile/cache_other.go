//go:build !unix

package compile

import (
	"io/fs"
	"os"
)

// Permission bits mean nothing on this system: its directories of users are private
// by their access lists.
func private(fs.FileInfo) error { return nil }

func openToAll(string) error { return nil }

func sameDevice(*os.Root, fs.DirEntry) bool { return true }
