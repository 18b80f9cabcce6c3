package journal

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"strconv"
	"strings"
)

// markFile holds a revision beside the NATS server's store: when a server forgets all
// streams, those that show how far the journal went are gone with it. It is not synced,
// as an older revision also shows that a journal was lost.
type markFile struct {
	path string // "": there is none
	log  *slog.Logger
	file *os.File // nil before the first write, and after one that failed
}

// read gives the revision, 0 when there is none.
func (m *markFile) read() uint64 {
	if m.path == "" {
		return 0
	}
	text, err := os.ReadFile(m.path)
	if errors.Is(err, fs.ErrNotExist) {
		return 0
	}
	var revision uint64
	if err == nil {
		revision, err = strconv.ParseUint(strings.TrimSpace(string(text)), 10, 64)
	}
	if err != nil {
		m.log.Error("the file that marks the end of the journal cannot be read: only the NATS server shows how far it went", "file", m.path, "error", err)
		return 0
	}
	return revision
}

// write replaces the revision. A failure is reported, and costs a witness only.
func (m *markFile) write(revision uint64) {
	if m.path == "" {
		return
	}
	var err error
	if m.file == nil {
		m.file, err = os.OpenFile(m.path, os.O_WRONLY|os.O_CREATE, 0o600)
	}
	if err == nil {
		_, err = m.file.WriteAt(fmt.Appendf(nil, "%020d\n", revision), 0)
	}
	if err != nil {
		m.log.Warn("the end of the journal cannot be marked in the data directory", "file", m.path, "error", err)
		m.close()
	}
}

func (m *markFile) close() {
	if m.file != nil {
		m.file.Close()
		m.file = nil
	}
}
