package wasi

import (
	"io"
	"io/fs"

	"github.com/tetratelabs/wazero/experimental/sys"
	wasys "github.com/tetratelabs/wazero/sys"
)

// stream is what stdin, stdout and stderr have in common. What it does not do
// answers ENOSYS.
type stream struct{ sys.UnimplementedFile }

// Stat describes a device.
func (stream) Stat() (wasys.Stat_t, sys.Errno) {
	return wasys.Stat_t{Mode: fs.ModeDevice | 0o640, Nlink: 1}, 0
}

type input struct {
	stream
	from io.Reader // nil: empty
}

// Read reads from the process's stdin. The end is a read of no bytes.
func (s *input) Read(b []byte) (int, sys.Errno) {
	if s.from == nil {
		return 0, 0
	}
	n, err := s.from.Read(b)
	return n, sys.UnwrapOSError(err)
}

type output struct {
	stream
	to io.Writer // nil: discarded
}

// Write writes to the process's stdout or stderr.
func (s *output) Write(b []byte) (int, sys.Errno) {
	if s.to == nil {
		return len(b), 0
	}
	n, err := s.to.Write(b)
	return n, sys.UnwrapOSError(err)
}
