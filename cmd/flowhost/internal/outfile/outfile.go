package outfile

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// Kind is a kind of file that commands write. A file of another kind is not
// overwritten: its name is probably a mistake.
type Kind struct {
	what string
	is   func(head []byte) bool // whether a file that begins so is one
	flag string
}

var (
	Module = Kind{what: "a wasm module", flag: "--output", is: func(head []byte) bool {
		return bytes.HasPrefix(head, []byte("\x00asm"))
	}}
	JUnit = Kind{what: "a JUnit report", flag: "--junit", is: func(head []byte) bool {
		return bytes.HasPrefix(head, []byte("<?xml")) && bytes.Contains(head, []byte("<testsuites"))
	}}
	// Artifact is a file with any content, of which none is overwritten.
	Artifact = Kind{what: "empty", flag: "--output", is: func([]byte) bool { return false }}
)

// Check rejects a path whose file must not be overwritten. Empty files, devices and
// pipes may be written to.
func (k Kind) Check(path string) error {
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		if _, err := os.Lstat(path); err == nil {
			return fmt.Errorf("%s is a dangling symbolic link, which is not written through", path)
		}
		if dir := filepath.Dir(path); !isDir(dir) {
			return fmt.Errorf("there is no directory %s for the file of %s: create it first", dir, k.flag)
		}
		return nil
	case err != nil:
		return err
	case info.IsDir():
		return fmt.Errorf("%s is a directory: %s requires a file", path, k.flag)
	case !info.Mode().IsRegular() || info.Size() == 0:
		return nil
	}
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	defer file.Close()
	head := make([]byte, 256)
	n, err := io.ReadFull(file, head)
	if err != nil && !errors.Is(err, io.ErrUnexpectedEOF) {
		return err
	}
	if !k.is(head[:n]) {
		return fmt.Errorf("%s is not %s and is not overwritten: name another file with %s, or remove this one", path, k.what, k.flag)
	}
	return nil
}

func isDir(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

// Write writes a file, unless check rejects its path.
func (k Kind) Write(path string, content []byte) error {
	return k.Stream(path, all(content))
}

// Stream is Write for content that is too large for memory. When write fails, the file is as
// it was; a device or a pipe has what was written before.
func (k Kind) Stream(path string, write func(io.Writer) error) error {
	if err := k.Check(path); err != nil {
		return err
	}
	if info, err := os.Stat(path); err == nil && !info.Mode().IsRegular() {
		return writeStream(path, write)
	}
	return replace(path, write)
}

// all writes content.
func all(content []byte) func(io.Writer) error {
	return func(w io.Writer) error {
		_, err := w.Write(content)
		return err
	}
}

// writeStream writes to a device or a pipe. A pipe without a reader is an error:
// the write would block forever.
func writeStream(path string, write func(io.Writer) error) error {
	file, err := os.OpenFile(path, os.O_WRONLY|openNow, 0)
	if err != nil {
		return err
	}
	return errors.Join(write(file), file.Close())
}

// Replace writes a file in one step, so that an interrupted run never leaves
// half of it. A symbolic link remains one, and a file keeps its permissions and its
// owner; a read-only file is not changed.
func Replace(name string, content []byte) error { return replace(name, all(content)) }

func replace(name string, write func(io.Writer) error) error {
	target, err := filepath.EvalSymlinks(name)
	var before fs.FileInfo
	if errors.Is(err, fs.ErrNotExist) {
		target, err = name, nil
	} else if err == nil {
		before, err = os.Stat(target)
	}
	if err == nil && before != nil && before.Mode().Perm()&0o200 == 0 {
		err = fmt.Errorf("%s is read-only and was not changed", name)
	}
	if err != nil {
		return err
	}
	temporary, err := os.CreateTemp(filepath.Dir(target), ".new-*")
	if err != nil {
		return err
	}
	defer os.Remove(temporary.Name()) // fails once it is renamed
	err = errors.Join(write(temporary), likeBefore(temporary, before), temporary.Close())
	if err == nil {
		err = os.Rename(temporary.Name(), target)
	}
	return err
}

// likeBefore gives a file the permissions and the owner of the one that it
// replaces.
func likeBefore(file *os.File, before fs.FileInfo) error {
	if before == nil {
		return file.Chmod(0o644)
	}
	return errors.Join(keepOwner(file, before), file.Chmod(before.Mode().Perm()))
}
