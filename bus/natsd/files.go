package natsd

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
)

// replaceFile writes a file so that after a crash it is there as a whole, or as it
// was before.
func replaceFile(name string, text []byte, mode os.FileMode) error {
	file, err := os.CreateTemp(filepath.Dir(name), ".new-*")
	if err != nil {
		return err
	}
	_, err = file.Write(text)
	err = errors.Join(err, file.Chmod(mode), file.Sync(), file.Close())
	if err == nil {
		err = os.Rename(file.Name(), name)
	}
	if err == nil {
		return syncFile(filepath.Dir(name))
	}
	return errors.Join(err, os.Remove(file.Name()))
}

// syncFile flushes a file or directory, one that is gone meanwhile counting as done.
func syncFile(name string) error {
	file, err := os.Open(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	return errors.Join(file.Sync(), file.Close())
}
