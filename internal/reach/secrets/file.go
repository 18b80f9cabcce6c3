package secrets

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"runtime"
)

// readPrivate reads a file with a secret, and warns when all users of the machine may, too.
func (s *Store) readPrivate(path string, limit int64) ([]byte, *failure) {
	content, mode, failed := readFile(path, limit)
	const others = 0o004
	if failed == nil && mode.Perm()&others != 0 && runtime.GOOS != "windows" {
		s.warnOnce(path)
	}
	return content, failed
}

// readFile reads a regular file of bounded size. The failure has nothing of its content.
func readFile(path string, limit int64) ([]byte, fs.FileMode, *failure) {
	// Asked before it is opened: the opening of a pipe would wait for its other end.
	info, err := os.Stat(path)
	if err != nil {
		return nil, 0, fileFailure(err)
	}
	if !info.Mode().IsRegular() {
		return nil, 0, &failure{text: "its file is no regular file", cause: path}
	}
	file, err := os.Open(path)
	if err != nil {
		return nil, 0, fileFailure(err)
	}
	content, err := io.ReadAll(io.LimitReader(file, limit+1))
	if err := errors.Join(err, file.Close()); err != nil {
		return nil, 0, fileFailure(err)
	}
	if int64(len(content)) > limit {
		return nil, 0, &failure{text: fmt.Sprintf("its file is larger than %d bytes", limit), cause: path}
	}
	return content, info.Mode(), nil
}

func fileFailure(err error) *failure {
	text := "its file cannot be read"
	switch {
	case errors.Is(err, fs.ErrNotExist):
		text = "its file does not exist"
	case errors.Is(err, fs.ErrPermission):
		text = "the host may not read its file"
	}
	return &failure{text: text, cause: err.Error(), retryable: true}
}
